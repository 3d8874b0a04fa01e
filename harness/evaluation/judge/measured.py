"""Measured shapes on a device: every plan that will be timed is run on fresh contents and judged in blocks of rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import cast

from harness.backends.triton.stages import planned_shapes
from harness.domain.verdict import CaseResult, Correctness
from harness.domain.vocabulary import Backend
from harness.evaluation.judge.inputs import all_attributes
from harness.evaluation.judge.large import make_large_inputs
from harness.evaluation.judge.lending import Collected, Lending
from harness.evaluation.judge.nulling import call_nulled, judge_nulled
from harness.evaluation.judge.oracle import InvalidReference
from harness.evaluation.judge.rows import RowsChecked, check_rows
from harness.evaluation.judge.seeds import generator
from harness.evaluation.judge.session import Session, call_case, invalid
from harness.evaluation.ports import Announced, PlanReplayer
from harness.evaluation.run import Refused, Run
from harness.operators.base import ShapePoint

MIXED = "mixed"


def judge_measured(run: Run, session: Session) -> None:
    """Judge the shapes whose plans are timed, and leave out launches of the smallest one (``nulling``).

    Contents are made and memory is lent before the device is held; judging begins after it was given back. Adds a
    ``CaseResult`` per shape. Raises ``Refused`` or ``CandidateFault``.
    """
    worker = cast(PlanReplayer, session.worker)
    points = sorted(planned_shapes(run), key=lambda point: _bytes(run, point))
    if not points:
        return
    dtype = run.workload.dtypes[Backend.TRITON]
    worker.prepare([Announced(p.dims, all_attributes(run.spec, p.attributes), dtype) for p in points])
    with ExitStack() as stack:
        run.progress(run.stage, 0, len(points), "contents of the measured shapes")
        with ThreadPoolExecutor(len(points)) as pool:
            making = [pool.submit(_lend, run, point, dtype) for point in points]
        lendings = [stack.enter_context(made.result()) for made in making]
        nulled, names = call_nulled(run, worker, lendings[0]), worker.launches(lendings[0].lent, lendings[0].attributes)
        for point, lending in zip(points, lendings, strict=True):
            run.ensure_time()
            call_case(worker, lending, _name(point))
        worker.rest()
        for point, lending in zip(points, lendings, strict=True):
            broken = lending.broken_guards(run.stage, _name(point))
            if broken:
                raise Refused(broken[0][0], *(reason for _, reason in broken))
            _judge(run, point, lending, lending.collect())
        judge_nulled(run, names, nulled, lendings[0], points[0].dims, _name(points[0]))


def _bytes(run: Run, point: ShapePoint) -> int:
    return run.spec.bytes_per_call(point.dims, 2)


def _name(point: ShapePoint) -> str:
    return f"measured {point.label}"


def _lend(run: Run, point: ShapePoint, dtype: str) -> Lending:
    assert run.seed is not None
    attributes = all_attributes(run.spec, point.attributes)
    inputs = make_large_inputs(
        run.spec, point.dims, run.workload.regimes, attributes, dtype, run.seed, str(run.stage), _name(point))
    return Lending(run.spec, inputs, attributes, dtype)


def _judge(run: Run, point: ShapePoint, lending: Lending, collected: Collected) -> None:
    assert run.seed is not None
    override = run.request.goal.limits.tolerance
    try:
        result = check_rows(
            run.spec, point.dims, lending.inputs, lending.attributes, lending.dtype, collected,
            generator(run.seed, "rows", _name(point)), run.stage, _name(point), override.relative if override else None)
    except InvalidReference as error:
        raise invalid(run, error, _name(point)) from error
    _record(run, point, lending.dtype, result)
    if result.faults:
        raise Refused(result.faults[0][0], *(reason for _, reason in result.faults[:8]))


def _record(run: Run, point: ShapePoint, dtype: str, result: RowsChecked) -> None:
    entry = CaseResult(
        name=_name(point), regime=MIXED, dtype=dtype, passed=not result.faults, worst_ratio=result.worst_ratio,
        error=result.error, baseline_error=result.honest_error, library_error=result.library_error,
        bound=result.bound,
    )
    run.correctness = Correctness((*run.correctness.cases, entry))
