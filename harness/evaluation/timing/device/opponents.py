"""The kernels that a candidate is compared with: recorded, derived and compiled as it was, once in a process.

A campaign compares round after round with the same baseline and, mostly, the same incumbent. What is kept follows from
the file, the shapes and the target alone; contents and addresses are every evaluation's own.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from harness.backends.triton import planning
from harness.backends.triton.check import PlanForged
from harness.backends.triton.compiler.binaries import binaries_of
from harness.backends.triton.compiler.compiled import CompileFailed
from harness.backends.triton.compiler.process import CompilerProcess
from harness.backends.triton.derive import matching
from harness.backends.triton.targets import Target, find_target
from harness.domain.digest import digest_document
from harness.domain.errors import InfrastructureError
from harness.domain.plan import LaunchPlan
from harness.domain.vocabulary import Backend
from harness.evaluation.ports import CandidateFault
from harness.evaluation.run import Run
from harness.evaluation.timing.device.session import Kernel
from harness.operators.base import ShapePoint

COMPILE_S = 60.0
REMEMBERED = 8
_known: OrderedDict[str, Kernel] = OrderedDict()
_lock = threading.Lock()


def opponent(run: Run, side: str, text: str, points: Sequence[ShapePoint]) -> Kernel:
    """The kernel of ``text`` for ``points``: recorded in a sandbox, derived from its file and compiled afresh, as the
    candidate was, or what that gave before in this process; ``compile_s`` is what compiling took then.

    Raises:
        InfrastructureError: it fails, although it passed when it was judged itself.
    """
    target = find_target(run.target)
    key = _key(run, text, points, target)
    with _lock:
        known = _known.get(key)
        if known is not None:
            _known.move_to_end(key)
            return known
    made = _made(run, side, text, points, target)
    with _lock:
        _known[key] = made
        while len(_known) > REMEMBERED:
            _known.popitem(last=False)
    return made


def _key(run: Run, text: str, points: Sequence[ShapePoint], target: Target) -> str:
    shapes = [[point.label, dict(point.dims), dict(point.attributes)] for point in points]
    spec = run.spec
    return digest_document([spec.name, spec.version, run.workload.dtypes[Backend.TRITON], target.name, shapes, text])


def _made(run: Run, side: str, text: str, points: Sequence[ShapePoint], target: Target) -> Kernel:
    worker: Any = run.open_workers("triton-plan").open(deadline_s=_patience(run), options={"target": target.name})
    try:
        defaults = {attribute.name: attribute.default for attribute in run.spec.attributes}
        plans = planning.record_plans(worker, text, run.spec.arguments, points, run.workload.dtypes[Backend.TRITON],
                                      target, defaults)
        _ensure_runnable(side, plans)
        matching.prove(run.open_workers("triton-derive"), text, plans, target, deadline_s=_patience(run))
        began = time.perf_counter()
        rows = binaries_of(plans, CompilerProcess(target), deadline_s=_patience(run))
        seconds = time.perf_counter() - began
    except (CandidateFault, PlanForged, CompileFailed, matching.IrForeign) as fault:
        raise unusable(side, str(fault)) from fault
    finally:
        worker.close()
    return Kernel({point.label: (plan, row) for point, plan, row in zip(points, plans, rows, strict=True)}, seconds)


def _ensure_runnable(side: str, plans: Sequence[LaunchPlan]) -> None:
    for plan in plans:
        if plan.refusals:
            raise unusable(side, plan.refusals[0].text)


def unusable(side: str, text: str) -> InfrastructureError:
    """An opponent that was verified before must run; where it does not, nobody can be compared with it."""
    return InfrastructureError(
        f"The {side} kernel, which the candidate is compared with, cannot be timed on this device: {text} "
        "Nothing was recorded against the candidate; evaluate that kernel afresh."
    )


def _patience(run: Run) -> float:
    return max(1.0, min(COMPILE_S, run.remaining_s))
