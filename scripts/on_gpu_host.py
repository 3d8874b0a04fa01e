"""The whole product on the machine at hand: server, engine, workers, a campaign, a review, a promotion.

Run from the repository root: ``python scripts/on_gpu_host.py`` on a GPU host, ``--backend numba`` on any machine. It
serves an installation of its own in a folder of its own (SQLite, no demo), starts a campaign through the web API with
a token, lets the engine run it, and approves what it found as reviewers do: over HTTP, with a session, CSRF tokens
and fresh re-authentication. Then it checks the promotion, the champion that the API serves, the git tag and the
leaderboard. It prints each step with its time and exits 0, or 1 with the reason. With ``--agent scripted`` a language
model of the project's own, which answers from a script and needs no network, is the agent.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.domain.codec import to_document
from harness.domain.goal import AgentChoice, Budget, Goal, Stop
from harness.domain.vocabulary import Backend, Tier
from harness.hardware.detect import hardware_name
from harness.hardware.gpu import gpu_name
from scripts.gpu_host.journey import WORKLOAD, Journey
from scripts.gpu_host.record import Record, say
from scripts.gpu_host.site import Site
from scripts.gpu_host.visitor import Failed

DEFAULTS = {"triton": ("rms_norm", 2), "numba": ("rms_norm", 2)}
"""Operator and rounds by backend."""
AGENTS = {"playbook": AgentChoice(), "scripted": AgentChoice("openai", "scripted", "good")}
ENDPOINTS = '[endpoint.scripted]\nurl = "script:"\nmodels = ["good"]\n'
"""What the installation's settings say of language models."""
PACKAGES = ("django", "channels", "daphne", "torch", "triton", "numba")


def main() -> int:
    """Run, print the table, write what ``--out`` asks for."""
    given = options().parse_args()
    operator, rounds = DEFAULTS[given.backend]
    record = Record(given.limit)
    folder = Path(tempfile.mkdtemp(prefix="kernelopt-host-"))
    try:
        hardware = device(given.backend)
    except Failed as problem:
        say(f"FAILED: {problem}")
        return 1
    goal = goal_of(given.operator or operator, given.backend, hardware, given.grant, given.rounds or rounds,
                   AGENTS[given.agent])
    (folder / "endpoints.toml").write_text(ENDPOINTS, "utf-8")
    say(f"{goal['operator']} on {given.backend}, {hardware}; {versions()}; folder {folder}")
    gpu = gpu_name()
    journey = Journey(Site(folder), record, goal, [hardware_name(), *([gpu] if gpu else [])])
    reason = ""
    try:
        journey.run()
    except Failed as problem:
        reason = str(problem)
    finally:
        left = journey.site.stop()
    if left:
        reason = reason or f"serve left processes behind: {left}"
    say("")
    say(record.table())
    if reason:
        say(f"\nFAILED after {record.seconds:.1f} s: {reason}\n\nThe end of serve.log:\n{journey.site.log()}")
    else:
        say(f"\nALL STEPS PASSED in {record.seconds:.1f} s")
    keep(given.out, journey, hardware, reason)
    if not given.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if reason else 0


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=sorted(DEFAULTS), default="triton")
    parser.add_argument("--operator", help="rms_norm by default")
    parser.add_argument("--grant", choices=["light", "medium", "heavy"], default="medium")
    parser.add_argument("--agent", choices=sorted(AGENTS), default="playbook")
    parser.add_argument("--rounds", type=int, help="rounds of the campaign")
    parser.add_argument("--limit", type=float, default=540.0, metavar="S", help="seconds for everything")
    parser.add_argument("--out", type=Path,
                        help="folder for the steps, the log of serve, champion, board and a model's conversation")
    parser.add_argument("--keep", action="store_true", help="keep the installation's folder")
    return parser


def device(backend: str) -> str:
    """The device that the campaign is for.

    Raises:
        Failed: Triton without a GPU: nothing would be timed, so nothing could be promoted.
    """
    if backend == "numba":
        return hardware_name()
    found = gpu_name()
    if found is None:
        raise Failed("This machine has no NVIDIA GPU with a driver. Use --backend numba here.")
    return found


def goal_of(operator: str, backend: str, hardware: str, grant: str, rounds: int,
            agent: AgentChoice = AGENTS["playbook"]) -> dict[str, Any]:
    """The goal that is posted: the defaults with a small budget."""
    goal = Goal(operator=operator, backend=Backend(backend), hardware=hardware, workload=WORKLOAD, grant=Tier(grant),
                agent=agent, budget=Budget(rounds=rounds), stop=Stop(spot_check_every=3 if grant == "heavy" else 5))
    document: dict[str, Any] = to_document(goal)
    return document


def versions() -> str:
    """What is installed."""
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in PACKAGES)])


def version(name: str) -> str:
    """An installed package's version, ``absent`` without it."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def keep(out: Path | None, journey: Journey, hardware: str, reason: str) -> None:
    """Write what a reader of the run may want to see."""
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    facts = {"version": 1, "hardware": hardware, "versions": {name: version(name) for name in PACKAGES},
             "python": platform.python_version(), "goal": journey.goal, "passed": not reason, "reason": reason,
             "seconds": round(journey.record.seconds, 2), "steps": journey.record.document(),
             "champion": journey.champion}
    (out / "product.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    (out / "product.txt").write_text(journey.record.table() + "\n", "utf-8")
    (out / "board.html").write_text(journey.board, "utf-8")
    if journey.conversation:
        (out / "conversation.zip").write_bytes(journey.conversation)
    log = journey.site.folder / "serve.log"
    if log.exists():
        shutil.copyfile(log, out / "serve.log")


if __name__ == "__main__":
    sys.exit(main())
