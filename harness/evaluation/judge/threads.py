"""Kernels that run on several threads, where the clock may have one core for them: one thread alone never races itself.

The process that smoke compiles with bounds checks gets several threads, more than there are cores if need be, and its
threads are made to meet (``harness.backends.numba.interleaving``). It is called on rows for all of them, on many short
rows and on two long ones, which a kernel may share out in other ways: every result is judged, and all must be the same
bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.domain.vocabulary import Backend
from harness.evaluation.judge.amounts import amounts_of
from harness.evaluation.judge.repeats import same_bits
from harness.evaluation.judge.session import Session
from harness.evaluation.judge.sizes import largest_within, sizes_in_words, sizes_of
from harness.evaluation.judge.trials import Kept, usual_attributes, usual_dims, usual_dtype
from harness.evaluation.ports import Worker
from harness.evaluation.run import Refused, Run
from harness.hardware.cores import reserve

LEAST_THREADS, MOST_THREADS = 4, 16
CALLS, FEW_CALLS = 6, 3
ROWS_EACH = 32
"""Rows of a thread: even, so that all begin at alike rows; whatever line of scratch two rows share by their numbers,
two threads use it at the same time."""
SHORT, MANY_ROWS_EACH, ELEMENTS = 32, 2048, 600_000
"""Length and number of short rows, and the work of a problem of these or of two long rows at most."""


def threads_for(run: Run) -> int | None:
    """Threads of the process that is called to find races; ``None`` for kernels that start none."""
    parallel = run.request.backend is Backend.NUMBA and "parallel" in run.source
    return min(MOST_THREADS, max(LEAST_THREADS, reserve().threads)) if parallel else None


def on_threads(run: Run, session: Session, worker: Worker, threads: int) -> None:
    """Call ``worker``, which runs ``threads``, several times on each problem. Raises ``Refused`` or
    ``CandidateFault``."""
    for dims, calls in _problems(run, threads):
        name = f"{sizes_in_words(dims)} on {threads} threads"
        problem = session.problem(name, dims, "normal", usual_attributes(run), usual_dtype(run))
        first = Kept()
        for call in range(calls):
            result = session.judge(problem, worker)
            if result.faults:
                raise Refused(result.faults[0][0], *result.reasons)
            if call == 0:
                first(result.collected)
            elif run.spec.deterministic:
                same_bits(run, name, first, result.collected)


def _problems(run: Run, threads: int) -> Iterator[tuple[dict[str, int], int]]:
    """Sizes and how often they are called."""
    spec, usual, axis = run.spec, usual_dims(run), run.spec.outputs[0].dims[0]
    lead, room = next(iter(spec.domain)), replace(amounts_of(run), elements=ELEMENTS, programs=0)
    yield {**usual, axis: threads * ROWS_EACH}, CALLS
    short = {dim: span.low for dim, span in spec.domain.items()} | {lead: min(SHORT, spec.domain[lead].high)}
    rows = largest_within(spec, room, short, axis, threads * MANY_ROWS_EACH)
    each = 1 << (max(1, rows // threads).bit_length() - 1)  # threads begin at alike lines of any scratch of 2^n
    yield sizes_of(spec.domain, {**short, axis: threads * each}), FEW_CALLS
    long = {dim: usual[dim] // (usual[span.times] if span.times else 1) for dim, span in spec.domain.items()}
    long[axis] = 2
    long[lead] = largest_within(spec, room, long, lead, spec.domain[lead].high)
    yield sizes_of(spec.domain, long), FEW_CALLS
