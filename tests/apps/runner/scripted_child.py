"""A stand-in for ``python -m harness evaluate --serve`` that does what the candidate's first line says.

``# refuse`` a refused verdict · ``# crash`` dies by SIGKILL · ``# exit`` ends · ``# hang`` never answers ·
``# silent`` answers without a verdict · ``# other`` judges another kernel · ``# garbage`` writes no JSON ·
``# breed`` starts a grandchild of its own session and hangs · ``# env`` answers with its environment as reason ·
``# grow`` keeps ten megabytes more.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SCHEMA = Path(__file__).parents[3] / "harness" / "domain" / "schema" / "verdict.json"


KEPT: list[bytearray] = []


def refused(request: dict, text: str) -> dict:
    """A verdict document that refuses the candidate of ``request``."""
    verdict = json.loads(SCHEMA.read_text("utf-8"))["examples"][0]
    return verdict | {
        "kernel": request["candidate"]["digest"], "operator": request["operator"], "backend": request["backend"],
        "hardware": request["hardware"], "outcome": "policy_violation", "stage": "static", "blame": "policy",
        "reasons": [{"code": "forbidden", "stage": "static", "text": text, "line": None, "case": None, "index": None,
                     "got": None, "expected": None, "bound": None}],
        "timing": None, "comparison": "none", "compared_with": None, "regressions": [], "score": None, "samples": None}


def say(document: dict) -> None:
    """One line of output."""
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def answer(word: str, request: dict, response: Path) -> None:
    """Do what ``word`` says."""
    if word == "crash":
        sys.stderr.write("about to die\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "exit":
        sys.exit(3)
    if word == "breed":
        grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        say({"stage": "static", "done": 0, "total": 1, "text": str(grandchild.pid)})
    while word in ("hang", "breed"):
        time.sleep(0.05)
    if word == "grow":
        KEPT.append(bytearray(b"x" * (10 << 20)))
    if word == "garbage":
        response.write_text("{")
    elif word == "other":
        response.write_text(json.dumps(refused(request, "x") | {"kernel": "sha256:" + "0" * 64}))
    elif word == "env":
        response.write_text(json.dumps(refused(request, json.dumps(dict(os.environ)))))
    elif word != "silent":
        response.write_text(json.dumps(refused(request, f"pid {os.getpid()}")))


def main() -> None:
    """Answer requests line by line."""
    sys.stdout.write("a library says hello\n")
    for line in sys.stdin:
        asked = json.loads(line)
        request = json.loads(Path(asked["request"]).read_text("utf-8"))
        for stage in ("admit", "static"):
            say({"stage": stage, "done": 1, "total": 1, "text": f"{stage} looked"})
        answer(request["candidate"]["source"].split("\n")[0].removeprefix("# "), request, Path(asked["response"]))
        say({"done": asked["response"], "exit": 1})


if __name__ == "__main__":
    main()
