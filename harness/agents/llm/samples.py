"""Several conversations at a time. Turns are kept by the asking thread alone, whatever thread they come from: what
keeps them may belong to that thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

from harness.domain.turn import Turn

T = TypeVar("T")
Keep = Callable[[Turn], None]


def side_by_side(jobs: Sequence[Callable[[Keep], T]], keep: Keep) -> list[Future[T]]:
    """Run the jobs in threads of their own, each with a ``keep`` that hands over to this thread, until all are over.
    One job alone runs here."""
    if len(jobs) == 1:
        return [_here(jobs[0], keep)]
    waiting: SimpleQueue[tuple[Turn, Future[None]] | None] = SimpleQueue()

    def hand_over(turn: Turn) -> None:
        done: Future[None] = Future()
        waiting.put((turn, done))
        done.result()

    with ThreadPoolExecutor(len(jobs), thread_name_prefix="sample") as pool:
        futures = [pool.submit(job, hand_over) for job in jobs]
        for future in futures:
            future.add_done_callback(lambda _: waiting.put(None))
        left = len(futures)
        while left:
            item = waiting.get()
            if item is None:
                left -= 1
            else:
                _keep(keep, *item)
    return futures


def _keep(keep: Keep, turn: Turn, done: Future[None]) -> None:
    try:
        keep(turn)
    except BaseException as error:  # noqa: BLE001 - it is raised again where the turn came from
        done.set_exception(error)
    else:
        done.set_result(None)


def _here(job: Callable[[Keep], T], keep: Keep) -> Future[T]:
    future: Future[T] = Future()
    try:
        future.set_result(job(keep))
    except Exception as error:  # noqa: BLE001 - raised again by whoever reads the result
        future.set_exception(error)
    return future
