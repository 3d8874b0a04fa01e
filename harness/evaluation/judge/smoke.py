"""Stage ``smoke``: a few calls between guard bands, for numba also compiled with bounds checks."""

from __future__ import annotations

from harness.domain.vocabulary import Backend, Stage
from harness.evaluation.judge.inputs import cases_for, dtype_for
from harness.evaluation.judge.session import Session, end_session, open_worker, session_of
from harness.evaluation.ports import Worker
from harness.evaluation.run import Refused, Run
from harness.operators.base import Case


def smoke(run: Run) -> None:
    """Run the operator's smoke cases. All processes import the candidate before the secret seed is drawn.

    Raises ``Refused`` or ``CandidateFault``; on success the session stays open for the next stage.
    """
    backend = Backend(run.request.backend)
    cases = [case for case in cases_for(run.spec, backend) if case.smoke]
    checked = open_worker(run, bounds_checks=True) if backend is Backend.NUMBA else None
    try:
        session = session_of(run)
        total = len(cases) * (2 if checked else 1)
        done = 0
        for worker, how in ((checked, " with bounds checks"), (session.worker, "")):
            if worker is None:
                continue
            for case in cases:
                run.progress(Stage.SMOKE, done, total, f"{case.name}{how}")
                _one(run, session, case, worker)
                done += 1
    except BaseException:
        end_session(run)
        raise
    finally:
        if checked is not None:
            checked.close()
    run.progress(Stage.SMOKE, total, total, f"{len(cases)} smoke case(s) passed")


def _one(run: Run, session: Session, case: Case, worker: Worker) -> None:
    dtype = dtype_for(case, run.workload, Backend(run.request.backend))
    problem = session.problem(case.name, case.dims, case.regime, case.attributes, dtype, case.layout)
    result = session.judge(problem, worker)
    if result.faults:
        outcome = result.faults[0][0]
        raise Refused(outcome, *result.reasons)
