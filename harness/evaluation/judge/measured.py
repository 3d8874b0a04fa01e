"""Measured shapes on a device: every plan that will be timed is run on secret contents and judged in blocks of rows."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from harness.backends.triton.stages import planned_shapes
from harness.domain.verdict import CaseResult, Correctness
from harness.domain.vocabulary import Backend
from harness.evaluation.judge.bases import Base, bases_of
from harness.evaluation.judge.inputs import all_attributes
from harness.evaluation.judge.nulling import call_nulled, judge_nulled
from harness.evaluation.judge.oracle import InvalidReference
from harness.evaluation.judge.rows import LEAST_BLOCKS, RowsChecked, check_rows
from harness.evaluation.judge.seeds import generator
from harness.evaluation.judge.session import Session, call_case, invalid
from harness.evaluation.ports import Announced, PlanReplayer
from harness.evaluation.run import Refused, Run

MIXED = "mixed"


def begin_measured(run: Run) -> None:
    """Contents of the measured shapes begin to be made, beside everything else."""
    bases_of(run, tuple(planned_shapes(run)))


def prepare_measured(run: Run, session: Session) -> list[Base]:
    """Plans, binaries and contents of the measured shapes, the smallest first; the device is held by nobody."""
    points = tuple(planned_shapes(run))
    if not points:
        return []
    dtype = run.workload.dtypes[Backend.TRITON]
    cast(PlanReplayer, session.worker).prepare(
        [Announced(point.dims, all_attributes(run.spec, point.attributes), dtype) for point in points])
    run.progress(run.stage, 0, len(points), "contents of the measured shapes")
    return sorted(bases_of(run, points).ready(), key=lambda base: run.spec.bytes_per_call(base.point.dims, 2))


def judge_measured(run: Run, session: Session, bases: list[Base]) -> None:
    """Judge the shapes whose plans are timed, and leave out launches of the smallest one (``nulling``).

    Judging begins after the device was given back; several shapes are judged at a time. Adds a ``CaseResult`` per
    shape. Raises ``Refused`` or ``CandidateFault``.
    """
    if not bases:
        return
    worker, smallest = cast(PlanReplayer, session.worker), bases[0]
    nulled = call_nulled(run, worker, smallest.lending)
    names = worker.launches(smallest.lending.lent, smallest.lending.attributes)
    for base in bases:
        run.ensure_time()
        call_case(worker, base.lending, _name(base))
    worker.rest()
    for base in bases:
        broken = base.lending.broken_guards(run.stage, _name(base))
        if broken:
            raise Refused(broken[0][0], *(reason for _, reason in broken))
    with ThreadPoolExecutor(_at_a_time()) as pool:
        judged = [pool.submit(_checked, run, base) for base in bases]
        for base, result in zip(bases, judged, strict=True):
            _conclude(run, base, result.result())
    judge_nulled(run, names, nulled, smallest.lending, smallest.point.dims, _name(smallest))


def _at_a_time() -> int:
    """Shapes judged at a time: few rows of each are, on a thread of their own."""
    return max(1, len(os.sched_getaffinity(0)) // LEAST_BLOCKS)


def _name(base: Base) -> str:
    return f"measured {base.point.label}"


def _checked(run: Run, base: Base) -> RowsChecked:
    assert run.seed is not None
    override = run.request.goal.limits.tolerance
    name = _name(base)
    try:
        return check_rows(
            run.spec, base.point.dims, base.inputs, base.lending.attributes, base.lending.dtype, base.lending.collect(),
            generator(run.seed, "rows", name), run.stage, name, override.relative if override else None)
    except InvalidReference as error:
        raise invalid(run, error, name) from error


def _conclude(run: Run, base: Base, result: RowsChecked) -> None:
    entry = CaseResult(
        name=_name(base), regime=MIXED, dtype=base.lending.dtype, passed=not result.faults,
        worst_ratio=result.worst_ratio, error=result.error, baseline_error=result.honest_error,
        library_error=result.library_error, bound=result.bound,
    )
    run.correctness = Correctness((*run.correctness.cases, entry))
    if result.faults:
        raise Refused(result.faults[0][0], *(reason for _, reason in result.faults[:8]))
