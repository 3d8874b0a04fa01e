"""The processes of one timing round: one per side, compiled, pinned to the clock's cores, frozen outside their turn."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from harness.domain.errors import InfrastructureError
from harness.evaluation.judge.lending import Lending
from harness.evaluation.ports import CandidateFault
from harness.evaluation.sandbox import tree
from harness.evaluation.sandbox.worker import SandboxWorker, claimed_seconds, describe
from harness.hardware.cores import Cores

CANDIDATE = "candidate"
AGAIN = "again"
"""A second process of the opponent: the A/A control."""
FDS_PER_MESSAGE = 200


@dataclass(frozen=True, slots=True)
class Side:
    """One process that holds one kernel. ``first_call_s``: import, compilation and first call, on the judge's clock.
    ``threads``: how many cores it may use."""

    name: str
    worker: SandboxWorker
    first_call_s: float
    threads: int = 1

    def lend(self, ring: Sequence[Lending]) -> None:
        """Lend the whole ring, in as many messages as the descriptors need; the process stays frozen afterwards."""
        per_message = max(1, FDS_PER_MESSAGE // len(ring[0].lent))
        for start in range(0, len(ring), per_message):
            part = ring[start : start + per_message]
            fds = [item.fd for lending in part for item in lending.lent]
            index = {fd: place for place, fd in enumerate(fds)}
            slots = [[describe(item, index[item.fd]) for item in lending.lent] for lending in part]
            request = {"op": "lend_ring", "fresh": start == 0, "slots": slots, "attributes": part[0].attributes}
            self.worker.ask(request, fds)

    def batch(self, ring: Sequence[Lending], slots: Sequence[int]) -> tuple[float, float | None]:
        """Poison the outputs of ``slots``, then ``timed``."""
        for slot in set(slots):
            ring[slot].poison()
        return self.timed(slots)

    def timed(self, slots: Sequence[int]) -> tuple[float, float | None]:
        """Call once per slot, in that order, on outputs just poisoned; the judge's seconds and the worker's claim.

        The seconds are at least what the process spent on its cores until it was frozen: work that a thread does
        before the question or after the answer is charged as well.

        Raises:
            CandidateFault: the kernel failed.
        """
        request = {"op": "batch", "slots": list(slots)}
        spent = self.worker.cpu_s
        tree.ahead(0, tree.JUDGE)  # or the judge's own wait for a core would be charged to the kernel
        try:
            self.worker.resume()
            began = time.perf_counter()
            answer = self.worker.exchange(request)
            seconds = time.perf_counter() - began
            self.worker.freeze()
            self.worker.check_quiet()
        finally:
            tree.ordinary(0)
        return max(seconds, (self.worker.cpu_s - spent) / self.threads), claimed_seconds(answer)


def open_sides(opener: Any, sources: Mapping[str, str], compile_request: dict[str, Any], cores: Cores,
               deadline_s: float) -> dict[str, Side]:
    """Fresh processes for all sides, two at a time while they compile, then pinned to the clock's cores.

    Raises:
        CandidateFault: the candidate failed.
        InfrastructureError: another side failed, which passed when it was judged itself.
    """

    def start(name: str) -> Side:
        worker = opener.open(deadline_s=deadline_s)
        try:
            began = time.perf_counter()
            worker.load(sources[name])
            worker.ask(compile_request)
            seconds = time.perf_counter() - began
            worker.pin(cores.timing, cores.rest)
        except BaseException:
            worker.close()
            raise
        return Side(name, worker, seconds, len(cores.timing))

    sides: dict[str, Side] = {}
    failures: list[tuple[str, CandidateFault]] = []
    with ThreadPoolExecutor(2) as pool:
        for name, future in [(name, pool.submit(start, name)) for name in sources]:
            try:
                sides[name] = future.result()
            except CandidateFault as fault:
                failures.append((name, fault))
    if failures:
        close_sides(sides)
        name, failed = next((f for f in failures if f[0] == CANDIDATE), failures[0])
        raise failed if name == CANDIDATE else opponent_failed(name, failed)
    return sides


def opponent_failed(name: str, fault: CandidateFault) -> InfrastructureError:
    """An opponent that was verified before must run; where it does not, nobody can be compared with it."""
    return InfrastructureError(
        f"The {name} kernel, which the candidate is compared with, failed while it was timed: {fault.fault.text} "
        "Nothing was recorded against the candidate; evaluate that kernel afresh."
    )


def close_sides(sides: Mapping[str, Side]) -> None:
    """Kill all processes of a round."""
    for side in sides.values():
        side.worker.close()
