"""The least times of works on a device that may still be raising its clocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

SAMPLES, MOST = 5, 400
"""Samples in a row without a fall after which the times are settled, and the most that are taken."""
LEAST_S = 0.2
"""A device that has been idle raises its clocks over some tenths of a second: the work goes on at least so long."""
FALL = 0.002
"""A relative fall of a least time that is more than its noise."""


def least(works: Sequence[Callable[[], float]], clock: Callable[[], float] = time.monotonic) -> list[float]:
    """Take samples of all ``works`` in turn, each of which returns a time, until no least time has fallen for a while;
    the least of each."""
    found = [float("inf")] * len(works)
    marks = found  # the least times when one last fell: many small falls are a fall
    quiet, began = 0, clock()
    for _ in range(MOST):
        found = [min(work(), old) for work, old in zip(works, found, strict=True)]
        fell = any(new < (1 - FALL) * mark for new, mark in zip(found, marks, strict=True))
        quiet, marks = (0, found) if fell else (quiet + 1, marks)
        if quiet >= SAMPLES and clock() - began >= LEAST_S:
            break
    return found
