"""``python -m harness optimize``: run a whole campaign here, nobody attending."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.agents.protocol import Agent
from harness.agents.registry import make_agent
from harness.backends.present import ensure_present
from harness.campaign.folder import CampaignFolder
from harness.campaign.goal_options import Options, goal_of
from harness.campaign.local import Evaluator, Step, measure_final, run_campaign
from harness.campaign.model_desk import desk_for, endpoints_path
from harness.campaign.predicted import predicted_lines, stated_predictions
from harness.campaign.report import headline, report
from harness.campaign.resume import Resumed, resumed, stored_goal
from harness.campaign.start import start_state
from harness.cli.campaign_text import CampaignBar, print_log
from harness.cli.numbers import COUNT, SECONDS
from harness.domain.codec import to_document
from harness.domain.errors import UsageError
from harness.domain.goal import Goal
from harness.domain.prediction import calibration
from harness.domain.request import EvaluationRequest
from harness.domain.samples import Samples
from harness.domain.verdict import Verdict
from harness.domain.vocabulary import Backend, Role
from harness.domain.words import counted
from harness.engine.log import log_entries
from harness.engine.state import CampaignState, Status
from harness.evaluation.run import Progress
from harness.hardware.digests import digest
from harness.search.planner import planner_for


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--goal", type=Path, metavar="FILE", help="a goal document (TOML); options override it")
    parser.add_argument("--operator")
    parser.add_argument("--backend", choices=[str(b) for b in Backend])
    parser.add_argument("--agent", choices=["playbook", "autotune", "openai"], help="default playbook")
    parser.add_argument("--strategy", choices=["halving", "exhaustive"], help="how autotune searches")
    parser.add_argument("--hardware", help="defaults to this machine's; for Triton the GPU to prepare for")
    parser.add_argument("--workload")
    parser.add_argument("--grant", choices=["light", "medium", "heavy"])
    parser.add_argument("--rounds", type=COUNT, metavar="N")
    parser.add_argument("--seconds", type=SECONDS, metavar="S", help="stop beginning rounds after this many seconds")
    parser.add_argument("--endpoint", help="for --agent openai: an endpoint of the file of endpoints")
    parser.add_argument("--model", help="for --agent openai: one of the endpoint's models")
    parser.add_argument("--effort", help="for --agent openai: how much the model may think, where it has efforts")
    parser.add_argument("--best-of", type=COUNT, metavar="N", help="for --agent openai: candidates per asking, 1 to 8")
    parser.add_argument("--tokens", type=COUNT, metavar="N", help="for --agent openai: ask no more after this many")
    parser.add_argument("--endpoints", type=Path, metavar="FILE",
                        help="the file of endpoints (default: KERNELOPT_ENDPOINTS, else var/endpoints.toml)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where log, kernels, verdicts and the report go")
    parser.add_argument("--json", action="store_true", help="print one document about the whole campaign")


def run(arguments: argparse.Namespace) -> int:
    """Run the campaign; exit 0 ended in order, 1 failed, 2 usage or an evaluator that could not judge."""
    names = ("operator", "backend", "hardware", "workload", "agent", "strategy", "grant", "rounds", "seconds",
             "endpoint", "model", "effort", "best_of", "tokens")
    goal, overrides = goal_of(arguments.goal, Options(**{name: getattr(arguments, name) for name in names}))
    fresh = Resumed(start_state(goal, attended=False))
    ensure_present(goal.backend)
    before = _interrupted(arguments.out, goal) or fresh
    if before.evaluations:
        sys.stderr.write(f"The campaign in {arguments.out} goes on after "
                         f"{counted(before.evaluations, 'evaluation')}.\n")
    desk = desk_for(goal.agent, endpoints_path(arguments.endpoints), arguments.out) \
        if goal.agent.kind == "openai" else None
    agent = make_agent(goal.agent, planner_for(goal), desk)
    for sentence in overrides:
        sys.stderr.write(sentence + "\n")
    return optimize(before.state, agent, real_evaluator, out=arguments.out, as_json=arguments.json, overrides=overrides,
                    lines=before.lines)


def _interrupted(out: Path | None, goal: Goal) -> Resumed | None:
    """The same campaign where it was interrupted in ``out``; a language model's begins again, by the turns that are
    kept. What another campaign left there is never written over.

    Raises:
        UsageError: the folder holds another campaign, or is none.
    """
    if out is None or not out.exists():
        return None
    if not out.is_dir():
        raise UsageError(f"--out {out} is no folder. Nothing was begun; name a new folder.")
    results = out / "results.jsonl"
    if not results.exists() or not results.stat().st_size:
        return None
    before = stored_goal(out)
    if before is not None and _slot(before) == _slot(goal):
        if before.agent.kind == "openai":
            return None
        there = resumed(out, goal)
        if there is not None and not there.state.status.over:
            return there
    what = f"a campaign of {before.agent.kind} on {before.operator}" if before is not None else "another campaign"
    raise UsageError(f"--out {out} holds {what} already. Nothing was changed; name a new folder. A campaign that was "
                     "interrupted goes on when its own options are given again.")


def _slot(goal: Goal) -> tuple[str, ...]:
    return goal.operator, str(goal.backend), goal.hardware, goal.workload, goal.agent.kind


def optimize(state: CampaignState, agent: Agent, evaluator_of: Any, *, out: Path | None, as_json: bool,
             overrides: tuple[str, ...] = (), lines: Sequence[str] = ()) -> int:
    """The command behind its options; ``evaluator_of(progress)`` gives the evaluator, ``lines`` are the results that
    led to ``state`` where a campaign goes on."""
    bar = CampaignBar(state.goal.budget.rounds)
    evaluate: Evaluator = evaluator_of(bar.stage)
    folder = CampaignFolder(out, state, lines) if out is not None else None
    began = time.monotonic()

    def observe(step: Step) -> None:
        if folder is not None:
            folder.record(step)
        bar.step(step)

    hardware = _hardware_facts(state)
    if folder is not None:
        folder.write_hardware(hardware)
    state = run_campaign(state, agent, evaluate, observe=observe, hardware=hardware)
    final = measure_final(state, evaluate) if state.status is Status.FINISHED else None
    bar.close()
    verdict = final[1] if final is not None else None
    if folder is not None:
        if final is not None:
            folder.write_verdict("final", final[1], final[2])
        folder.write_log(state)
        (folder.path / "report.html").write_text(report(state, verdict, agent.label), "utf-8")
    seconds = round(time.monotonic() - began, 1)
    if as_json:
        document = document_of(state, verdict, agent.label, seconds, overrides)
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
    else:
        _print(state, verdict, seconds, out)
    return exit_code(state, verdict)


def real_evaluator(progress: Progress) -> Evaluator:
    """The evaluator of this installation, in this process."""
    from harness.evaluation.pipeline import evaluate_fully

    def evaluate(request: EvaluationRequest) -> tuple[Verdict, Samples | None]:
        evaluation = evaluate_fully(request, progress=progress)
        return evaluation.verdict, evaluation.samples

    return evaluate


def exit_code(state: CampaignState, final: Verdict | None) -> int:
    """0 ended in order, 1 failed or the final kernel did not pass its fresh measurement, 2 the evaluator is out."""
    if state.status is Status.PAUSED:
        return 2
    return 1 if state.status is Status.FAILED or (final is not None and not final.passed) else 0


def document_of(state: CampaignState, final: Verdict | None, label: str, seconds: float,
                overrides: tuple[str, ...]) -> dict[str, Any]:
    """One JSON document about the campaign; times that were not measured are null."""
    ratio = final.timing.overall.get(str(Role.BASELINE)) if final is not None and final.timing else None
    return {
        "version": 1,
        "goal": to_document(state.goal),
        "goal_digest": state.goal.digest,
        "overrides": list(overrides),
        "agent": {"kind": state.goal.agent.kind, "label": label},
        "status": str(state.status),
        "code": state.code,
        "cause": state.cause,
        "rounds": len(state.concluded),
        "evaluations": sum(record.evaluated for record in state.rounds),
        "seconds": seconds,
        "asked": {"turns": state.turns, "tokens": state.tokens, "money": state.money},
        "hypotheses": [to_document(hypothesis) for hypothesis in state.hypotheses],
        "baseline": {"digest": state.baseline.digest,
                     "verdict": to_document(state.baseline_verdict) if state.baseline_verdict else None},
        "log": [to_document(entry) for entry in log_entries(state)],
        "predictions": [to_document(row) for row in stated_predictions(state)],
        "calibration": to_document(calibration(stated_predictions(state))),
        "final": {"round": state.incumbent.round, "kernel": state.incumbent.kernel.digest,
                  "source": state.incumbent.kernel.source, "against_baseline": to_document(ratio) if ratio else None,
                  "verdict": to_document(final) if final is not None else None},
        "headline": headline(state, final),
    }


def _hardware_facts(state: CampaignState) -> dict[str, object]:
    return digest(state.goal.hardware).for_agents()


def _print(state: CampaignState, final: Verdict | None, seconds: float, out: Path | None) -> None:
    print_log(state)
    print()
    for line in predicted_lines(stated_predictions(state)):
        print(line)
    print(headline(state, final))
    if state.goal.backend is Backend.TRITON and (state.baseline_verdict is None or not state.baseline_verdict.timed):
        where = f"are in {out / 'requests'}" if out else "are written with --out"
        print(f"This was a dry run: nothing was timed. Requests for a GPU host {where}.")
    print(f"{state.status}: {state.cause} {counted(len(state.concluded), 'round')} in {seconds:.0f} s.")
    if state.turns:
        cost = f", {state.money:.4f} by the endpoint's prices" if state.money else ""
        print(f"The model answered {counted(state.turns, 'time')}: {state.tokens:,} tokens{cost}.")
    if out is not None:
        print(f"Report: {out / 'report.html'}")
