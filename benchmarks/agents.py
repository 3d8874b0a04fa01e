"""The playbook against classical autotuning on the machine at hand: same start, same number of evaluations.

Run from the repository root: ``python benchmarks/agents.py [--rounds N] [--operators a,b] [--write FILE]``. Both
campaigns run one after the other; the last measurement is one evaluation that times the playbook's final kernel,
autotune's final kernel and the baseline against each other in the same session. Ratios never are products of rounds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from table import print_machine

from harness.agents.registry import make_agent
from harness.campaign.goal_options import Options, goal_of
from harness.campaign.local import run_campaign
from harness.campaign.start import start_state
from harness.cli.optimize import real_evaluator
from harness.domain.codec import to_document
from harness.domain.request import SourceRef
from harness.engine.requests import final_request
from harness.engine.state import CampaignState

OPERATORS = ("rms_norm", "softmax", "decode_attention")


def campaign(operator: str, kind: str, grant: str, rounds: int, evaluate: Any) -> CampaignState:
    """One unattended campaign to its end."""
    options = Options(operator=operator, backend="numba", agent=kind, grant=grant, rounds=rounds, hardware=None,
                      workload=None, strategy=None, seconds=None)
    goal, _ = goal_of(None, options)
    state = start_state(goal, attended=False)
    return run_campaign(state, make_agent(goal.agent), evaluate)


def compare(operator: str, rounds: int, evaluate: Any) -> dict[str, Any]:
    """Both agents, then one paired measurement of all three kernels."""
    row: dict[str, Any] = {"operator": operator}
    states = {}
    for kind, grant in (("autotune", "light"), ("playbook", "heavy" if operator == "decode_attention" else "medium")):
        began = time.monotonic()
        state = states[kind] = campaign(operator, kind, grant, rounds, evaluate)
        row[kind] = {"grant": grant, "evaluations": sum(r.evaluated for r in state.rounds),
                     "rounds": len(state.concluded), "seconds": round(time.monotonic() - began, 1),
                     "ended": state.code, "kernel": state.incumbent.kernel.digest, "improved": state.improved}
    play, tune = states["playbook"], states["autotune"]
    best = tune.incumbent.kernel
    request = final_request(play, job=f"agents-{operator}", nonce="0", deadline_s=300.0,
                            champion=SourceRef(best.digest, best.source))
    verdict, _ = evaluate(request)
    row["outcome"] = str(verdict.outcome)
    row["noise"] = verdict.timing.noise if verdict.timing else None
    row["rounds_of_measurement"] = verdict.timing.rounds if verdict.timing else None
    overall = verdict.timing.overall if verdict.timing else {}
    row["playbook_over_baseline"] = to_document(overall["baseline"]) if "baseline" in overall else None
    row["playbook_over_autotune"] = to_document(overall["champion"]) if "champion" in overall else None
    return row


def main() -> None:
    """Run, print a table, write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--operators", default=",".join(OPERATORS))
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    evaluate = real_evaluator(lambda *_: None)
    rows = [compare(operator, arguments.rounds, evaluate) for operator in arguments.operators.split(",")]
    print(f"{'operator':18} {'playbook / baseline':>28} {'playbook / autotune':>28} {'A/A noise':>9}  evaluations")
    for row in rows:
        both = [_ratio(row["playbook_over_baseline"]), _ratio(row["playbook_over_autotune"])]
        noise = "not timed" if row["noise"] is None else f"{row['noise']:.1%}"
        print(f"{row['operator']:18} {both[0]:>28} {both[1]:>28} {noise:>9}  "
              f"{row['playbook']['evaluations']} and {row['autotune']['evaluations']}")
    print_machine("numba", "numpy")
    if arguments.write is not None:
        arguments.write.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


def _ratio(ratio: dict[str, Any] | None) -> str:
    return "not timed" if ratio is None else f"{ratio['ratio']:.3f}x [{ratio['low']:.3f}, {ratio['high']:.3f}]"


if __name__ == "__main__":
    main()
