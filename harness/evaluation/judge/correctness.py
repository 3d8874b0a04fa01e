"""Stage ``correctness``: every case of the operator and the measured shapes themselves, against float64.

``CaseResult.error`` is the candidate's largest absolute error, ``library_error`` that of PyTorch eager on the same
inputs. ``baseline_error`` is the shipped baseline's own where it is the candidate (round 0); otherwise that of the
honest implementation in the same dtype, which computes the same without a third process to compile in. Shapes that are
measured appear in every layout: dense in full, with strided rows and with a shifted base cut down to fewer rows.
"""

from __future__ import annotations

from dataclasses import replace

from harness.domain.verdict import CaseResult, Correctness, Reason
from harness.domain.vocabulary import Backend, Outcome, Stage
from harness.evaluation.buffers import Layout, dtype_of
from harness.evaluation.judge.checking import Checked
from harness.evaluation.judge.inputs import cases_for, dtype_for
from harness.evaluation.judge.measured import begin_measured, judge_measured, prepare_measured
from harness.evaluation.judge.rows import cut_dims, inner_axes
from harness.evaluation.judge.session import Problem, Session, end_session, session_of
from harness.evaluation.run import Place, Refused, Run
from harness.operators.base import Dims, OperatorSpec

MIXED = "mixed"
MEASURED = "measured"
LAYOUT_BYTES = 1 << 20


def correctness(run: Run) -> None:
    """Judge all cases in order; the first failure ends the stage. Adds a ``CaseResult`` per case that ran.

    Raises ``Refused`` or ``CandidateFault``; on success the session stays open for the next stage.
    """
    try:
        session = session_of(run)
        if run.place is Place.DEVICE:
            begin_measured(run)
        problems = list(_problems(run, session))
        session.prepare([problem for problem, _ in problems], libraries=True)
        measured = prepare_measured(run, session) if run.place is Place.DEVICE else []
        for done, (problem, regime) in enumerate(problems):
            run.progress(Stage.CORRECTNESS, done, len(problems), problem.name)
            _one(run, session, problem, regime)
        judge_measured(run, session, measured)
    except BaseException:
        end_session(run)
        raise
    run.progress(Stage.CORRECTNESS, len(problems), len(problems), f"{len(problems)} cases passed")


def _problems(run: Run, session: Session) -> list[tuple[Problem, str]]:
    backend = Backend(run.request.backend)
    problems = []
    for case in cases_for(run.spec, run.place):
        dtype = dtype_for(case, run.workload, backend)
        problem = session.problem(case.name, case.dims, case.regime, case.attributes, dtype, case.layout)
        problems.append((problem, case.regime))
    dtype = run.workload.dtypes[backend]
    for point in run.workload.shapes[backend] if run.place is not Place.INTERPRETER else ():
        if run.place is Place.NUMBA:  # a device's are judged in blocks of rows
            name = f"{MEASURED} {point.label}"
            problem = session.problem(name, point.dims, run.workload.regimes_of(point), point.attributes, dtype)
            problems.append((problem, MIXED))
        for layout in _other_layouts(run.spec):
            name = f"as measured {point.label} {layout}"
            dims = fewer_rows(run.spec, point.dims, dtype_of(dtype).itemsize)
            problem = session.problem(name, dims, run.workload.regimes_of(point), point.attributes, dtype, layout)
            problems.append((problem, MIXED))
    return problems


def _other_layouts(spec: OperatorSpec) -> tuple[Layout, ...]:
    """The layouts besides ``dense`` that an operator's arguments may have."""
    return ("strided", "offset") if any(argument.strided for argument in spec.inputs) else ("offset",)


def fewer_rows(spec: OperatorSpec, dims: Dims, item: int) -> Dims:
    """``dims`` with the first size of the outputs halved until a call moves at most ``LAYOUT_BYTES``, then that of the
    inner dimension and what is a multiple of it, where there is one."""
    cut = dict(dims)
    for moved in ({spec.outputs[0].dims[0]: 1}, inner_axes(spec, dims)):
        count = cut[next(iter(moved))] if moved else 1
        while count > 1 and spec.bytes_per_call(cut, item) > LAYOUT_BYTES:
            count = -(-count // 2)
            cut = cut_dims(cut, moved, range(count))
    return cut


def _one(run: Run, session: Session, problem: Problem, regime: str) -> None:
    result = session.judge(problem)
    _record(run, session, problem, regime, result)
    if result.faults:
        raise Refused(result.faults[0][0], *result.reasons)
    if problem.name.startswith(MEASURED):
        _limit_scratch(run, problem, result.scratch_bytes)


def _limit_scratch(run: Run, problem: Problem, scratch: int | None) -> None:
    """Hold what ``run()`` allocated for a measured shape (the worker's claim) against the goal's limit."""
    if scratch is None:
        return
    run.resources = replace(run.resources, scratch_bytes=max(scratch, run.resources.scratch_bytes or 0))
    arguments = run.spec.bytes_per_call(problem.dims, dtype_of(problem.dtype).itemsize)
    ratio = run.request.goal.limits.scratch_ratio
    if ratio is not None and scratch > ratio * arguments:
        text = (
            f"run() allocated {scratch:,} bytes of scratch for {arguments:,} bytes of arguments at {problem.name}; the "
            f"goal allows {ratio:g} times. Use less scratch."
        )
        raise Refused(Outcome.OVER_LIMIT, Reason("scratch_over_limit", run.stage, text, case=problem.name))


def _record(run: Run, session: Session, problem: Problem, regime: str, result: Checked) -> None:
    errors = [answer.honest_error for answer in session.answer(problem).values()]
    if run.source == run.spec.baseline(Backend(run.request.backend)):
        errors = [result.error]
    entry = CaseResult(
        name=problem.name,
        regime=regime,
        dtype=problem.dtype,
        passed=not result.faults,
        worst_ratio=result.worst_ratio,
        error=result.error,
        baseline_error=max((error for error in errors if error is not None), default=None),
        library_error=session.library_error(problem),
        bound=result.bound,
    )
    run.correctness = Correctness((*run.correctness.cases, entry))
