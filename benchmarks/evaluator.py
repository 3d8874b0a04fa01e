"""Seconds from submission to verdict, stage by stage against its budget, warm, on the machine at hand.

Run from the repository root: ``python benchmarks/evaluator.py [--repeat N]``. Every finished evaluation is appended to
the file named by ``--out``, so that a killed run goes on; ``--table`` prints what the file holds and measures nothing.
The first evaluation of every kernel warms the servers up and is not kept. On a GPU host Triton kernels are judged on
the device; elsewhere up to the probes by the interpreter.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.budgets import DEVICE_HELD_S, STAGES, STATIC_S, TOTAL_S
from benchmarks.series import OtherSeries, Series, facts
from harness import EVALUATOR_VERSION
from harness.domain.digest import digest_source
from harness.domain.goal import Goal
from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, Required, SourceRef
from harness.domain.vocabulary import Backend, Purpose, Role, Tier
from harness.hardware import telemetry
from harness.hardware.detect import hardware_name
from harness.hardware.gpu import gpu_name
from harness.operators import registry

OPERATORS = ("rms_norm", "softmax", "decode_attention")
PACKAGES = ("numba", "numpy", "torch", "triton")
MARK = "\n\n_MARK = 1\n"
"""A real change: the baseline itself would be no candidate."""
Line = dict[str, Any]


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
    """Measure what is missing, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--backend", choices=["numba", "triton"], action="append", help="both by default")
    parser.add_argument("--operator", choices=OPERATORS, action="append", help="all by default")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "evaluator.jsonl")
    parser.add_argument("--table", action="store_true", help="only print what the file holds")
    chosen = parser.parse_args()
    header = facts(PACKAGES, kind="evaluator", evaluator=EVALUATOR_VERSION, hardware=hardware_name(), gpu=gpu_name())
    try:
        series = Series(chosen.out, header)
    except OtherSeries as error:
        raise SystemExit(str(error)) from error
    if not chosen.table:
        for backend in chosen.backend or ["numba", "triton"]:
            for operator in chosen.operator or OPERATORS:
                measure(series, Backend(backend), operator, chosen.repeat)
        refusals(series, chosen.repeat)
    show(series)


def path_of(backend: Backend) -> str:
    """Which way kernels of ``backend`` are judged here: a key of the budgets."""
    if backend is Backend.NUMBA:
        return "numba"
    return "triton on a GPU" if gpu_name() else "triton without a GPU"


def measure(series: Series, backend: Backend, operator: str, repeat: int) -> None:
    """Evaluate the baseline of ``operator`` with a mark until ``repeat`` evaluations are kept."""
    from harness.evaluation.pipeline import evaluate

    path = path_of(backend)
    done = len(series.of(path=path, operator=operator))
    if done >= repeat:
        return
    hardware = hardware_name() if backend is Backend.NUMBA else gpu_name() or "nvidia-h200"
    request = request_of(operator, backend, registry.get(operator).baseline(backend) + MARK, hardware)
    for number in range(done - 1, repeat):
        began = time.monotonic()
        verdict = evaluate(replace(request, job=uuid.uuid4().hex))
        seconds = time.monotonic() - began
        print(f"{path} {operator}: {verdict.outcome}, {seconds:.2f} s", flush=True)
        if number >= done:
            series.add({
                "path": path, "operator": operator, "number": number, "outcome": str(verdict.outcome),
                "text": verdict.reasons[0].text if verdict.reasons else None, "seconds": round(seconds, 3),
                "stages": dict(verdict.stages), "held": verdict.environment.clocks.get("device_held_s"),
                "load": telemetry.load_average(),
            })


def refusals(series: Series, repeat: int) -> None:
    """A candidate that the static stage refuses: in a warm evaluator, and as a command in a fresh process."""
    from harness.evaluation.pipeline import evaluate

    if min(len(series.of(path="refused, warm")), len(series.of(path="refused, command"))) >= repeat:
        return
    source = "import os\n" + registry.get("rms_norm").baseline(Backend.NUMBA)
    request = request_of("rms_norm", Backend.NUMBA, source, hardware_name())
    evaluate(request)
    for number in range(len(series.of(path="refused, warm")), repeat):
        began = time.monotonic()
        evaluate(request)
        series.add({"path": "refused, warm", "number": number, "seconds": round(time.monotonic() - began, 4)})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "candidate.py")
        file.write_text(source, "utf-8")
        command = [sys.executable, "-m", "harness", "evaluate", "--operator", "rms_norm", "--backend", "numba",
                   str(file)]
        # With compiled modules in a folder of their own: what an installed copy starts from.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        for number in range(len(series.of(path="refused, command")) - 1, repeat):
            began = time.monotonic()
            subprocess.run(command, env=environment, capture_output=True, check=False)
            seconds = time.monotonic() - began
            if number >= len(series.of(path="refused, command")):
                series.add({"path": "refused, command", "number": number, "seconds": round(seconds, 4)})


def show(series: Series) -> None:
    """Every stage of every path against its budget, then the totals."""
    print("\n" + ", ".join(f"{key} {value}" for key, value in series.header.items() if value is not None))
    for path, budgets in STAGES.items():
        lines = series.of(path=path)
        if not lines:
            continue
        print(f"\n{path}: {len(lines)} evaluations, load average {min(line['load'] for line in lines):g} to "
              f"{max(line['load'] for line in lines):g}")
        _head()
        for stage, budget in budgets.items():
            _row(stage, [line["stages"][stage] for line in lines if stage in line["stages"]], budget)
        for operator in OPERATORS:
            _row(f"verdict of {operator}", [line["seconds"] for line in lines if line["operator"] == operator],
                 TOTAL_S[path])
        held = [line["held"] for line in lines if line["held"] is not None]
        if held:
            _row("device held", held, DEVICE_HELD_S)
        for line in lines:
            if line["outcome"] != "passed":
                print(f"not passed: {line['operator']} {line['outcome']}: {line['text']}")
    print("\nrefused by the static stage")
    _head()
    for path in ("refused, warm", "refused, command"):
        _row(path, [line["seconds"] for line in series.of(path=path)], STATIC_S)


def _head() -> None:
    print(f"{'seconds':32} {'median':>8} {'least':>8} {'most':>8} {'n':>3} {'budget':>7}")


def _row(name: str, seconds: Sequence[float], budget: float) -> None:
    if not seconds:
        print(f"{name:32} {'not measured':>8}")
        return
    middle = statistics.median(seconds)
    over = "  over" if middle > budget else ""
    print(f"{name:32} {middle:8.3f} {min(seconds):8.3f} {max(seconds):8.3f} {len(seconds):3d} {budget:7g}{over}")


if __name__ == "__main__":
    main()
