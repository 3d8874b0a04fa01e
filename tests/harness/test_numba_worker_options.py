"""What the judge's numba processes have and the timed ones have not: filled memory, and threads that meet."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from harness.backends.numba import fresh_memory
from harness.evaluation import sandbox
from harness.evaluation.ports import Lent
from harness.hardware.cores import reserve

pytestmark = pytest.mark.sandbox
ROWS = 64
HEAD = "import numba\nimport numpy as np\n\n"
STALE = HEAD + """
@numba.njit
def _kernel(given, large, ints, out):
    made = np.empty(32, np.float32)
    like = np.empty_like(made)
    clean = np.zeros(32, np.float32)
    out[0], out[1], out[2] = made[31], like[5], clean[7]
    out[3], out[4], out[5] = given[3], large[large.shape[0] - 1], ints[1] > 0

def run(x, out):
    _kernel(np.empty(16, np.float32), np.empty(1 << 22, np.float32), np.empty(3, np.int64), out)
"""
THREADS = HEAD + """
@numba.njit(parallel=True)
def _kernel(x, out):
    for i in numba.prange(x.shape[0]):
        out[i] = numba.get_num_threads()

def run(x, out):
    _kernel(x, out)
"""
RACE = HEAD + """
@numba.njit(parallel=True)
def _kernel(x, out, part):
    for i in numba.prange(x.shape[0]):
        for j in range(16):
            part[j] = 0.0
        for j in range(1600):
            part[j % 16] += 1.0
        out[i] = part.sum()

def run(x, out):
    _kernel(x, out, np.empty(16, np.float32))
"""


def answers(source: str, options: Mapping[str, Any], calls: int = 1) -> list[np.ndarray]:
    """What ``calls`` calls of one process leave."""
    memory, lent = {}, []
    for name, kind in (("x", "input"), ("out", "output")):
        fd = os.memfd_create(name)
        os.ftruncate(fd, 4 * ROWS)
        memory[name] = np.memmap(f"/proc/self/fd/{fd}", np.float32, "r+", shape=(ROWS,))
        lent.append(Lent(name, kind, "float32", (ROWS,), (1,), 0, 4 * ROWS, fd))  # type: ignore[arg-type]
    worker = sandbox.opener("numba").open(deadline_s=60.0, options=options)
    try:
        worker.load(source)
        found = []
        for _ in range(calls):
            worker.call(lent, {})
            found.append(memory["out"].copy())
        return found
    finally:
        worker.close()
        for item in lent:
            os.close(item.fd)


def test_fresh_memory_of_the_judge_holds_another_fill_in_every_call() -> None:
    seen = answers(STALE, {"filled": True}, calls=len(fresh_memory.FILLS))
    for call, out in enumerate(seen, 1):
        fill = fresh_memory.FILLS[call % len(fresh_memory.FILLS)]
        stale = np.full(4, fill, np.uint8).view(np.float32)[0]
        np.testing.assert_array_equal(out[[0, 1, 3, 4]], np.full(4, stale))
        assert out[2] == 0.0
        assert out[5] == (fill < 0x80)


def test_fresh_memory_of_other_processes_is_the_systems() -> None:
    (out,) = answers(STALE, {})
    assert out[4] == 0.0  # pages that nobody had before


def test_threads_are_as_many_as_asked_for_and_else_the_clocks() -> None:
    assert set(answers(THREADS, {"threads": 5})[0]) == {5.0}
    assert set(answers(THREADS, {})[0]) == {float(reserve().threads)}


def test_threads_that_meet_show_a_race() -> None:
    seen = answers(RACE, {"threads": 4}, calls=6)
    assert any((out != 1600.0).any() for out in seen)
