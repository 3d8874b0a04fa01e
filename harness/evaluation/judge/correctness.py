"""Stage ``correctness``: every case of the operator and the measured shapes themselves, against float64.

``CaseResult.error`` is the candidate's largest absolute error. ``baseline_error`` is that of the honest implementation
in the same dtype (what the shipped baseline computes, without running it in a worker), ``library_error`` that of
PyTorch eager on the same inputs.
"""

from __future__ import annotations

from dataclasses import replace

from harness.domain.verdict import CaseResult, Correctness, Reason
from harness.domain.vocabulary import Backend, Outcome, Stage
from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.checking import Checked
from harness.evaluation.judge.inputs import cases_for, dtype_for
from harness.evaluation.judge.measured import judge_measured
from harness.evaluation.judge.oracle import library_errors
from harness.evaluation.judge.session import Problem, Session, end_session, session_of
from harness.evaluation.run import Place, Refused, Run

MIXED = "mixed"


def correctness(run: Run) -> None:
    """Judge all cases in order; the first failure ends the stage. Adds a ``CaseResult`` per case that ran.

    Raises ``Refused`` or ``CandidateFault``; on success the session stays open for the next stage.
    """
    try:
        session = session_of(run)
        problems = list(_problems(run, session))
        session.prepare([problem for problem, _ in problems])
        for done, (problem, regime) in enumerate(problems):
            run.progress(Stage.CORRECTNESS, done, len(problems), problem.name)
            _one(run, session, problem, regime)
        if run.place is Place.DEVICE:
            judge_measured(run, session)
    except BaseException:
        end_session(run)
        raise
    run.progress(Stage.CORRECTNESS, len(problems), len(problems), f"{len(problems)} cases passed")


def _problems(run: Run, session: Session) -> list[tuple[Problem, str]]:
    backend = Backend(run.request.backend)
    problems = []
    for case in cases_for(run.spec, backend):
        dtype = dtype_for(case, run.workload, backend)
        problem = session.problem(case.name, case.dims, case.regime, case.attributes, dtype, case.layout)
        problems.append((problem, case.regime))
    if backend is Backend.NUMBA:
        for point in run.workload.shapes[backend]:
            dtype = run.workload.dtypes[backend]
            name = f"measured {point.label}"
            problem = session.problem(name, point.dims, run.workload.regimes, point.attributes, dtype)
            problems.append((problem, MIXED))
    return problems


def _one(run: Run, session: Session, problem: Problem, regime: str) -> None:
    result = session.judge(problem)
    _record(run, session, problem, regime, result)
    if result.faults:
        raise Refused(result.faults[0][0], *result.reasons)
    if regime == MIXED:
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
    honest = [answer.honest_error for answer in session.answer(problem).values()]
    entry = CaseResult(
        name=problem.name,
        regime=regime,
        dtype=problem.dtype,
        passed=not result.faults,
        worst_ratio=result.worst_ratio,
        error=result.error,
        baseline_error=max((error for error in honest if error is not None), default=None),
        library_error=library_errors(run.spec, problem.inputs, problem.attributes),
        bound=result.bound,
    )
    run.correctness = Correctness((*run.correctness.cases, entry))
