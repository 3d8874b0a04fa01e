"""Record evaluations on a GPU host as fixtures: request, launch plans, verdict and raw samples of each kernel.

Run from the repository root on the GPU host: ``python scripts/record_device_runs.py``; it writes to
``tests/fixtures/<hardware>`` unless ``--out`` names another folder.
``tests/contracts/test_recorded_device_runs.py`` replays them on machines without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.backends.triton.planning import record_plans
from harness.backends.triton.targets import find_target
from harness.domain.codec import to_document
from harness.domain.digest import digest_source
from harness.domain.goal import Goal
from harness.domain.plan import LaunchPlan
from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, Required, SourceRef
from harness.domain.vocabulary import Backend, Purpose, Role
from harness.evaluation import sandbox
from harness.evaluation.pipeline import evaluate_fully
from harness.hardware.gpu import gpu_name
from harness.operators import registry

OPERATORS = ROOT / "harness" / "operators"
CORPUS = ROOT / "tests" / "adversarial"
KERNELS: tuple[tuple[str, str, Path], ...] = (
    ("rms_norm-baseline", "rms_norm", OPERATORS / "rms_norm/baselines/triton.py"),
    ("softmax-baseline", "softmax", OPERATORS / "softmax/baselines/triton.py"),
    ("decode_attention-baseline", "decode_attention", OPERATORS / "decode_attention/baselines/triton.py"),
    ("rms_norm-row-in-registers", "rms_norm", CORPUS / "honest/triton_row_in_registers.py"),
    ("softmax-one-block", "softmax", CORPUS / "honest/triton_softmax_one_block.py"),
    ("decode_attention-split", "decode_attention", CORPUS / "honest/triton_decode_split.py"),
    ("rms_norm-tail-dropped", "rms_norm", OPERATORS / "rms_norm/wrong/triton/tail_dropped.py"),
    ("rms_norm-store-past-end", "rms_norm", OPERATORS / "rms_norm/wrong/triton/store_past_end.py"),
    ("decode_attention-wrong-kv-head", "decode_attention",
     OPERATORS / "decode_attention/wrong/triton/wrong_kv_head.py"),
)
"""Name, operator and source: three baselines, three faster honest ones, three wrong ones."""
DEADLINE_S = 120.0


def request_of(operator: str, source: str, hardware: str) -> EvaluationRequest:
    """A probe of ``source`` against the operator's baseline."""
    spec = registry.get(operator)
    baseline = spec.baseline(Backend.TRITON)
    return EvaluationRequest(
        job=uuid.uuid4().hex, nonce=os.urandom(8).hex(), purpose=Purpose.PROBE,
        operator=OperatorRef(spec.name, spec.version), backend=Backend.TRITON, hardware=hardware, workload="llm",
        goal=Goal(operator=spec.name, backend=Backend.TRITON, hardware=hardware, workload="llm"),
        candidate=SourceRef(digest_source(source), source),
        against=(Opponent(Role.BASELINE, digest_source(baseline), baseline),), required=Required(isolation=0),
        deadline_s=DEADLINE_S,
    )


def plans_of(operator: str, source: str, hardware: str) -> list[LaunchPlan]:
    """The plans of the workload's shapes, recorded afresh."""
    spec, target = registry.get(operator), find_target(hardware)
    worker: Any = sandbox.opener("triton-plan").open(deadline_s=60.0, options={"target": target.name})
    try:
        return record_plans(worker, source, spec.arguments, spec.workloads["llm"].shapes[Backend.TRITON],
                            spec.workloads["llm"].dtypes[Backend.TRITON], target,
                            {attribute.name: attribute.default for attribute in spec.attributes})
    finally:
        worker.close()


def record(folder: Path, name: str, operator: str, source: str, hardware: str) -> str:
    """Evaluate one kernel and write its documents; the outcome in words."""
    request = request_of(operator, source, hardware)
    evaluation = evaluate_fully(request)
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    documents = {"request": request, "verdict": evaluation.verdict}
    if evaluation.samples is not None:
        documents["samples"] = evaluation.samples
    documents |= {f"plan-{number}": plan for number, plan in enumerate(plans_of(operator, source, hardware))}
    for title, document in documents.items():
        text = json.dumps(to_document(document), separators=(",", ":"))  # a signature's order is its meaning
        (target / f"{title}.json").write_text(text + "\n", "utf-8")
    verdict = evaluation.verdict
    return f"{verdict.outcome} at {verdict.stage}, {verdict.comparison}"


def main() -> None:
    """Record all kernels, or the ones named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", metavar="TEXT")
    chosen = parser.parse_args()
    hardware = gpu_name()
    if hardware is None:
        sys.exit("There is no GPU here; nothing was recorded.")
    folder = chosen.out or ROOT / "tests" / "fixtures" / hardware
    for name, operator, path in KERNELS:
        if chosen.only is None or chosen.only in name:
            print(f"{name}: {record(folder, name, operator, path.read_text('utf-8'), hardware)}", flush=True)


if __name__ == "__main__":
    main()
