"""Seconds from submission to verdict, stage by stage, on the machine at hand.

Run from the repository root: ``python benchmarks/evaluator.py [--repeat N]``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import uuid
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from table import print_machine, print_table

from harness.domain.digest import digest_source
from harness.domain.goal import Goal
from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, Required, SourceRef
from harness.domain.vocabulary import Backend, Purpose, Role, Stage, Tier
from harness.evaluation.pipeline import evaluate
from harness.hardware.detect import hardware_name
from harness.operators import registry


def request_of(operator: str, backend: Backend, source: str, hardware: str) -> EvaluationRequest:
    """A round's request for ``source`` against the operator's baseline."""
    spec = registry.get(operator)
    baseline = spec.baseline(backend)
    return EvaluationRequest(
        job=uuid.uuid4().hex, nonce=os.urandom(8).hex(), purpose=Purpose.ROUND,
        operator=OperatorRef(spec.name, spec.version), backend=backend, hardware=hardware, workload="llm",
        goal=Goal(operator=operator, backend=backend, hardware=hardware, workload="llm"),
        candidate=SourceRef(digest_source(source), source),
        against=(Opponent(Role.BASELINE, digest_source(baseline), baseline),),
        grant=Tier.HEAVY, required=Required(isolation=0),
    )


def main() -> None:
    """Warm up once per backend, then measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    here = hardware_name()
    totals: dict[str, list[float]] = defaultdict(list)
    stages: dict[str, list[float]] = defaultdict(list)
    for operator in ("rms_norm", "softmax", "decode_attention"):
        # Two statements swapped in a comment-free way would be no change; a trailing constant is a real one.
        source = registry.get(operator).baseline(Backend.NUMBA) + "\n\n_MARK = 1\n"
        base = request_of(operator, Backend.NUMBA, source, here)
        for n in range(repeat + 1):
            began = time.monotonic()
            verdict = evaluate(replace(base, job=uuid.uuid4().hex))
            if n:
                totals[f"numba {operator}: submission to verdict ({verdict.outcome})"].append(time.monotonic() - began)
                for name, seconds in verdict.stages.items():
                    stages[f"{operator}: {name}"].append(seconds)
        refused = request_of(operator, Backend.NUMBA, "import os\n" + source, here)
        for _ in range(repeat):
            began = time.monotonic()
            evaluate(refused)
            totals[f"numba {operator}: refused by static"].append(time.monotonic() - began)
        plan = request_of(operator, Backend.TRITON, registry.get(operator).baseline(Backend.TRITON), "nvidia-h200")
        for n in range(repeat + 1):
            began = time.monotonic()
            evaluate(plan, until=Stage.RESOURCES)
            if n:
                totals[f"triton {operator}: plan with resources"].append(time.monotonic() - began)
    budget = {"verdict": 15.0, "static": 0.2, "resources": 4.0}
    rows = [(k, v, next((b for w, b in budget.items() if w in k), None)) for k, v in totals.items()]
    print_table("Evaluator, warm", "s", rows)
    print_table("Stages of a numba candidate", "s", [(k, v, None) for k, v in stages.items()])
    print_machine("numba", "numpy", "torch", "triton")


if __name__ == "__main__":
    main()
