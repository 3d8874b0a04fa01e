"""``python -m harness parity``: whether a Triton kernel launches natively, on this host's GPU, what its plan says."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.backends.present import ensure_present
from harness.backends.triton.targets import DEFAULT_TARGET, find_target
from harness.cli.sources import read_kernel
from harness.domain.errors import UsageError
from harness.domain.vocabulary import Backend
from harness.evaluation.ports import CandidateFault
from harness.operators import registry
from harness.operators.base import OperatorSpec, ShapePoint, Workload


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", type=Path, help="the candidate")
    parser.add_argument("--operator", required=True)
    parser.add_argument("--hardware", default=DEFAULT_TARGET, help=f"the GPU of this host (default {DEFAULT_TARGET})")
    parser.add_argument("--workload", default="llm")
    parser.add_argument("--shape", metavar="LABEL", help="one shape of the workload (default: every one)")
    parser.add_argument("--json", action="store_true", help="print one document")


@dataclass(frozen=True, slots=True)
class _Row:
    """What came out for one shape."""

    shape: str
    same: bool
    differences: tuple[str, ...]
    host_us: float | None = None
    first_call_s: float | None = None
    walls: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return {"shape": self.shape, "same": self.same, "differences": list(self.differences),
                "host_us": self.host_us, "first_call_s": self.first_call_s, "walls": list(self.walls)}


def run(arguments: argparse.Namespace) -> int:
    """Record, compile, call natively, compare; exit 0 all equal, 1 something differs, 2 usage or environment."""
    spec = registry.get(arguments.operator)
    workload = spec.workloads.get(arguments.workload)
    if workload is None or Backend.TRITON not in workload.shapes:
        raise UsageError(f"Operator {spec.name} has no workload '{arguments.workload}' for Triton. "
                         f"Known: {', '.join(spec.workloads)}.")
    points = [p for p in workload.shapes[Backend.TRITON] if arguments.shape in (None, p.label)]
    if not points:
        known = ", ".join(p.label for p in workload.shapes[Backend.TRITON])
        raise UsageError(f"Workload '{workload.name}' has no shape '{arguments.shape}'. Known: {known}.")
    ensure_present(Backend.TRITON)
    _ensure_here(find_target(arguments.hardware).name)
    rows = _rows(arguments, spec, workload, points)
    if arguments.json:
        document = {"operator": spec.name, "hardware": arguments.hardware, "shapes": [row.document() for row in rows]}
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
    else:
        _print(rows)
    return 0 if all(row.same for row in rows) else 1


def _ensure_here(hardware: str) -> None:
    """Raises ``UsageError`` where this host cannot call the kernel natively: found out before anything is compiled."""
    from harness.hardware.gpu import gpu_name, present

    if not present(hardware):
        here = gpu_name() or "none that kernels can be launched on"
        raise UsageError(f"A parity run calls the kernel on {hardware}, this host's GPU is: {here}. Nothing was "
                         "compared; run it on a host with that GPU, or `plan` here, which needs none.")


def _rows(
    arguments: argparse.Namespace, spec: OperatorSpec, workload: Workload, points: list[ShapePoint]
) -> list[_Row]:
    from harness.backends.triton import planning
    from harness.backends.triton.compiler.binaries import binaries_of
    from harness.backends.triton.compiler.compiled import CompileFailed
    from harness.backends.triton.compiler.process import compiler_for
    from harness.backends.triton.native.parity import parity
    from harness.evaluation import sandbox

    target, source = find_target(arguments.hardware), read_kernel(arguments.file)
    worker: Any = sandbox.opener("triton-plan").open(options={"target": target.name})
    try:
        plans = planning.record_plans(
            worker, source, spec.arguments, points, workload.dtypes[Backend.TRITON], target,
            {attribute.name: attribute.default for attribute in spec.attributes})
        for plan in plans:
            if plan.refusals:
                return [_Row("every shape", False, tuple(refusal.text for refusal in plan.refusals))]
        binaries = binaries_of(plans, compiler_for(target))
    except (CandidateFault, CompileFailed, planning.PlanForged) as failed:
        return [_Row("every shape", False, (str(failed),))]
    finally:
        worker.close()
    rows = []
    for point, plan, compiled in zip(points, plans, binaries, strict=True):
        result = parity(source, spec, workload, point, plan, compiled, target, seed=secrets.randbits(63))
        rows.append(_Row(point.label, result.same, result.differences, result.host_us, result.first_call_s,
                         result.walls))
    return rows


def _print(rows: list[_Row]) -> None:
    out = sys.stdout.write
    out(f"{'shape':24} {'natively':>10} {'host-inclusive':>15} {'first call':>11}\n")
    for row in rows:
        host = "not timed" if row.host_us is None else f"{row.host_us:.1f} us"
        first = "not timed" if row.first_call_s is None else f"{row.first_call_s:.2f} s"
        out(f"{row.shape[:24]:24} {'the same' if row.same else 'differs':>10} {host:>15} {first:>11}\n")
        for text in row.differences:
            out(f"  {text}\n")
