"""How fast the clock's own core runs right now: a fixed piece of trusted work, timed on it.

A virtual machine shows no frequency and no throttle counter, and a neighbour on the other half of a core shows nowhere;
all three make the same work take longer. The work is a hash over a block that stays in the first-level cache: a chain
of dependent instructions, whose time follows the core's clock and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator, Sequence

BLOCK = bytes(16384)
BEATS = 8
"""The fastest of so many counts, so that an interrupt in one of them does not."""


@contextlib.contextmanager
def on_cores(cores: Sequence[int]) -> Iterator[None]:
    """Run this thread on ``cores`` alone, and where it was before afterwards."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def pulse(cores: Sequence[int]) -> float:
    """Seconds of the fixed work on the first of ``cores``; everything that is timed there must be frozen."""
    best = float("inf")
    with on_cores(cores[:1]):
        for _ in range(BEATS):
            began = time.perf_counter()
            hashlib.sha256(BLOCK).digest()
            best = min(best, time.perf_counter() - began)
    return best
