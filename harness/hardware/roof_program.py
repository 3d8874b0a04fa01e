"""Measures roofs and prints them as JSON; run as a program in a fresh process by ``roofs.measure``.

Loops over float32 arrays in compiled code, spread over as many threads as there are cores, and NumPy's own copy;
the best of both counts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial

PASSES = 12
LEAST_BYTES = 64 << 20
MATRIX = 768


def main() -> None:
    """Read the request from the command line, answer on standard output."""
    asked = json.loads(sys.argv[1])
    os.sched_setaffinity(0, asked["cores"])
    import numba
    import numpy as np

    parallel = len(asked["cores"]) > 1

    @numba.njit(parallel=parallel, fastmath=True)
    def read(source):  # type: ignore[no-untyped-def]
        total = np.float32(0)
        for index in numba.prange(source.shape[0]):
            total += source[index]
        return total

    @numba.njit(parallel=parallel)
    def copy(source, target):  # type: ignore[no-untyped-def]
        for index in numba.prange(source.shape[0]):
            target[index] = source[index]

    levels = []
    for footprint in asked["footprints"]:
        one = np.ones(footprint // 4, np.float32)
        half, other = one[: one.size // 2], one[one.size // 2 : 2 * (one.size // 2)]
        copies = (partial(copy, half, other), partial(np.copyto, other, half))
        levels.append({
            "footprint": footprint,
            "read": one.nbytes / best(partial(read, one), one.nbytes),
            "copy": 2 * half.nbytes / min(best(way, one.nbytes) for way in copies),
        })
    left = np.ones((MATRIX, MATRIX), np.float32)
    product = np.empty_like(left)
    seconds = best(lambda: np.matmul(left, left, out=product), left.nbytes)
    sys.stdout.write(json.dumps({"levels": levels, "flops": 2 * MATRIX**3 / seconds}))


def best(work: Callable[[], object], nbytes: int) -> float:
    """Seconds of the fastest pass; a pass repeats small work so that the clock's own cost does not count."""
    repeats = max(1, LEAST_BYTES // nbytes) if nbytes < LEAST_BYTES else 1
    work()
    fastest = float("inf")
    for _ in range(PASSES):
        began = time.perf_counter()
        for _ in range(repeats):
            work()
        fastest = min(fastest, (time.perf_counter() - began) / repeats)
    return fastest


if __name__ == "__main__":
    main()
