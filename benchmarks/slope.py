"""Device events against the judge's own clock, on a GPU: five kernels from about 4 us to about 2 ms.

Run from the repository root on a GPU host: ``python benchmarks/slope.py [--rounds 7]``. Per kernel and round: the
median of the cold samples by device events, and the slope over calls, (W(4n) - W(n)) / 3n, of back-to-back calls by the
judge's clock around its requests and by the launcher's own. Cold samples flush the caches first and nothing overlaps
with them, so the slope may be a little lower; events far below it would mean that work is hidden from them.
"""

from __future__ import annotations

import argparse
import json
import random
import secrets
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import slowed
from benchmarks.places import compiled_call
from benchmarks.series import facts
from benchmarks.table import print_machine
from harness import EVALUATOR_VERSION
from harness.domain.vocabulary import Backend
from harness.operators import registry
from harness.operators.base import OperatorSpec, ShapePoint

PAIRS = 20
REPEATED = (5, 20)
"""How often the longer kernels compute every row."""


def kernels() -> list[tuple[str, OperatorSpec, ShapePoint, str]]:
    """Name, operator, shape and source of each kernel."""
    rms_norm, decode = registry.get("rms_norm"), registry.get("decode_attention")
    small, large, short = _point(rms_norm, "32x8192"), _point(rms_norm, "8192x8192"), _point(decode, "B1 ")
    found = [(f"{spec.name} {point.label}", spec, point, spec.baseline(Backend.TRITON))
             for spec, point in ((rms_norm, small), (decode, short), (rms_norm, large))]
    return found + [(f"rms_norm {large.label}, {times} times", rms_norm, large,
                     slowed.source("gpu", (times - 1) * large.dims["rows"])) for times in REPEATED]


def _point(spec: OperatorSpec, label: str) -> ShapePoint:
    """The measured shape whose label begins so."""
    return next(one for one in spec.workloads["llm"].shapes[Backend.TRITON] if one.label.startswith(label))


def measure(device: Any, spec: OperatorSpec, point: ShapePoint, source: str, rounds: int) -> list[dict[str, float]]:
    """Microseconds per call, one entry per round: ``events`` (cold), ``hot``, ``judge`` and ``launcher``."""
    from harness.backends.triton.targets import find_target
    from harness.evaluation.timing.device.contents import Factors
    from harness.evaluation.timing.device.evidence import slope_us
    from harness.evaluation.timing.device.shape import Shape
    from harness.evaluation.timing.sides import CANDIDATE
    from harness.hardware.gpu import gpu_name

    workload = spec.workloads["llm"]
    dtype = workload.dtypes[Backend.TRITON]
    plan, binaries = compiled_call(source, point, dtype, find_target(gpu_name()), spec)
    draw, seed = random.Random(secrets.randbits(64)), secrets.randbits(128)
    shape = Shape(spec, point, dtype=dtype, regimes=workload.regimes, seed=seed, source=draw, stage="slope")
    factors = Factors(seed, "slope")
    try:
        handles = {CANDIDATE: device.load(plan, binaries)}
        sizes = {"l2_bytes": device.info.l2_bytes, "memory_bytes": device.info.memory_bytes}
        shape.settle(list(device.round(shape.round(factors, handles, 3, **sizes)).us[CANDIDATE]))
        found = []
        for _ in range(rounds):
            request = shape.round(factors, handles, PAIRS, slope_us=shape.expected_us, **sizes)
            result = device.round(request, timeout_s=60.0)
            timed = list(zip(result.us[CANDIDATE], request.sweeps, strict=True))
            found.append({
                "events": statistics.median(us for us, sweep in timed if sweep.flush),
                "hot": statistics.median(us for us, sweep in timed if not sweep.flush),
                "judge": slope_us(result.judged[CANDIDATE]), "launcher": slope_us(result.slope[CANDIDATE]),
            })
        return found
    finally:
        shape.close()
        factors.close()


def show(name: str, rounds: list[dict[str, float]]) -> None:
    """One line of the table: medians over rounds, and the lowest and highest ratio of a round."""
    ratios = [one["judge"] / one["events"] for one in rounds]
    middle = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    print(f"{name:32} {middle['events']:10.2f} {middle['hot']:10.2f} {middle['judge']:10.2f} "
          f"{middle['launcher']:10.2f} {statistics.median(ratios):8.3f} {min(ratios):7.3f} {max(ratios):7.3f}",
          flush=True)


def main() -> None:
    """Measure, print, and write the rounds beside the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "slope-gpu.json")
    chosen = parser.parse_args()
    from harness.backends.triton.launcher.process import open_device
    from harness.evaluation import sandbox
    from harness.hardware.detect import environment
    from harness.hardware.gpu import gpu_name

    name = gpu_name()
    if name is None:
        raise SystemExit("This host has no GPU that kernels can be launched on; there are no events to compare with.")
    here = environment(Backend.TRITON, name)
    document: dict[str, Any] = {"header": facts(("triton", "torch"), kind="slope", evaluator=EVALUATOR_VERSION,
                                                hardware=name, driver=here.driver, pairs=PAIRS)}
    print(f"{'us per call':32} {'events':>10} {'hot':>10} {'judge':>10} {'launcher':>10} {'ratio':>8} {'least':>7} "
          f"{'most':>7}")
    try:
        for label, spec, point, source in kernels():
            with open_device() as device:
                document[label] = measure(device, spec, point, source, chosen.rounds)
            show(label, document[label])
    finally:
        sandbox.close_all()
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    print(f"\n{here.gpu}, driver {here.driver}, {chosen.rounds} rounds of {PAIRS} samples; ratio: judge / events")
    print_machine("triton", "torch")


if __name__ == "__main__":
    main()
