"""Stage ``smoke``: a few calls between guard bands, for numba also compiled with bounds checks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from harness.domain.vocabulary import Backend, Stage
from harness.evaluation.judge.inputs import cases_for, dtype_for
from harness.evaluation.judge.session import Session, end_session, open_worker, session_of
from harness.evaluation.judge.threads import on_threads, threads_for
from harness.evaluation.ports import CandidateFault, Worker
from harness.evaluation.run import Refused, Run
from harness.operators.base import Case

Failure = Refused | CandidateFault


def smoke(run: Run) -> None:
    """Run the operator's smoke cases. All processes import the candidate before the secret seed is drawn.

    numba compiles twice, with and without bounds checks, in two processes at the same time; strided rows are one more
    specialisation, compiled here already so that it overlaps as well. The process with bounds checks has several
    threads, whatever the clock has (``threads.py``).
    Raises ``Refused`` or ``CandidateFault``; on success the session stays open for the next stage.
    """
    backend = Backend(run.request.backend)
    cases = cases_for(run.spec, run.place)
    first = [case for case in cases if case.smoke]
    checked = open_worker(run, bounds_checks=True, threads=threads_for(run)) if backend is Backend.NUMBA else None
    try:
        session = session_of(run)
        if checked is None:
            failure = _all(run, session, first, session.worker)
        else:
            more = [case for case in cases if case.layout == "strided" and not case.smoke]
            failure = _both(run, session, first, first + more, checked)
        if failure is not None:
            raise failure
    except BaseException:
        end_session(run)
        raise
    finally:
        if checked is not None:
            checked.close()
    run.progress(Stage.SMOKE, len(first), len(first), f"{len(first)} smoke case(s) passed")


def _both(run: Run, session: Session, first: list[Case], plain: list[Case], checked: Worker) -> Failure | None:
    """Both processes at once; what the bounds-checked one found is the better explanation and comes first."""
    with ThreadPoolExecutor(1) as background:
        with_checks = background.submit(_checked, run, session, first, checked)
        without = _all(run, session, plain, session.worker)
        return with_checks.result() or without


def _checked(run: Run, session: Session, cases: list[Case], worker: Worker) -> Failure | None:
    try:
        failure = _all(run, session, cases, worker)
        threads = threads_for(run)
        if failure is None and threads is not None:
            on_threads(run, session, worker, threads)
    except (Refused, CandidateFault) as raced:
        return raced
    return failure


def _all(run: Run, session: Session, cases: list[Case], worker: Worker) -> Failure | None:
    backend = Backend(run.request.backend)
    try:
        for done, case in enumerate(cases):
            if worker is session.worker:
                run.progress(Stage.SMOKE, done, len(cases), case.name)
            dtype = dtype_for(case, run.workload, backend)
            problem = session.problem(case.name, case.dims, case.regime, case.attributes, dtype, case.layout)
            result = session.judge(problem, worker)
            if result.faults:
                return Refused(result.faults[0][0], *result.reasons)
    except (Refused, CandidateFault) as failure:
        return failure
    return None
