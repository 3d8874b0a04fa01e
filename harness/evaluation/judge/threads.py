"""Kernels that run on several threads, where the clock may have one core for them: one thread alone never races itself.

The process that smoke compiles with bounds checks gets several threads, more than there are cores if need be, and its
threads are made to meet (``harness.backends.numba.interleaving``). It is called on one problem with rows for all of
them: every result is judged, and all must be the same bits.
"""

from __future__ import annotations

from harness.domain.vocabulary import Backend
from harness.evaluation.judge.repeats import same_bits
from harness.evaluation.judge.session import Session
from harness.evaluation.judge.trials import Kept, usual_attributes, usual_dims, usual_dtype
from harness.evaluation.ports import Worker
from harness.evaluation.run import Refused, Run
from harness.hardware.cores import reserve

LEAST_THREADS, MOST_THREADS = 4, 16
CALLS = 6
ROWS_EACH = 32
"""Rows of a thread: even, so that all begin at alike rows; whatever line of scratch two rows share by their numbers,
two threads use it at the same time."""


def threads_for(run: Run) -> int | None:
    """Threads of the process that is called to find races; ``None`` for kernels that start none."""
    parallel = run.request.backend is Backend.NUMBA and "parallel" in run.source
    return min(MOST_THREADS, max(LEAST_THREADS, reserve().threads)) if parallel else None


def on_threads(run: Run, session: Session, worker: Worker, threads: int) -> None:
    """Call ``worker``, which runs ``threads``, ``CALLS`` times. Raises ``Refused`` or ``CandidateFault``."""
    axis, rows = run.spec.outputs[0].dims[0], threads * ROWS_EACH
    name = f"{rows} {axis} on {threads} threads"
    problem = session.problem(name, {**usual_dims(run), axis: rows}, "normal", usual_attributes(run), usual_dtype(run))
    first = Kept()
    for call in range(CALLS):
        result = session.judge(problem, worker)
        if result.faults:
            raise Refused(result.faults[0][0], *result.reasons)
        if call == 0:
            first(result.collected)
        elif run.spec.deterministic:
            same_bits(run, name, first, result.collected)
