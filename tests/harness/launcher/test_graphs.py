"""Which launches of a call may begin before what comes ahead of them has ended."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from harness.backends.triton.launcher.binding import DEPENDENT
from harness.backends.triton.launcher.graphs import Loaded, Program
from harness.backends.triton.launcher.modules import Function
from harness.domain.plan import LaunchPlan, PlanBuffer

FILL = {"fill": {"buffer": 0, "offset": 0, "bytes": 64, "pattern": "00"}}


def launch(dependent: bool) -> dict[str, Any]:
    return {"launch": {"function": "_k", "grid": [1, 1, 1], "num_ctas": 1, "cooperative": False, "pdl": dependent,
                       "args": [{"buffer": 0, "offset": 0}]}}


class Watched:
    """In place of the driver: notes of every step whether it is a dependent launch, another one, or a fill."""

    version = 13_000

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, name: str, *arguments: Any) -> None:
        if name != "cuLaunchKernelEx":
            self.seen.append("fill")
            return
        config = arguments[0]._obj
        attributes = {config.attributes[number].id for number in range(config.count)}
        self.seen.append("dependent" if DEPENDENT in attributes else "launch")


def put(steps: list[dict[str, Any]], drop: int | None = None) -> list[str]:
    buffers = (PlanBuffer(0, "scratch", 64, 512, (16,), (1,), "float32"),)
    plan = LaunchPlan("cuda:90", "triton 3.7.1", "same", buffers, tuple(steps))
    count = sum("launch" in step for step in steps)
    loaded = Loaded(plan, tuple(Function(ctypes.c_void_p(), 4, 1, 0) for _ in range(count)))
    cuda: Any = Watched()
    Program(cuda, loaded, [1 << 20], drop).put(ctypes.c_void_p())
    return cuda.seen


@pytest.mark.parametrize(
    ("steps", "drop", "expected"),
    [
        ([launch(True)], None, ["launch"]),  # the call before it is not its own
        ([launch(False), launch(True)], None, ["launch", "dependent"]),
        ([launch(True), launch(True), launch(True)], None, ["launch", "dependent", "dependent"]),
        ([FILL, launch(True)], None, ["fill", "launch"]),
        ([launch(False), FILL, launch(True), launch(True)], None, ["launch", "fill", "launch", "dependent"]),
        ([launch(False), launch(True)], 0, ["launch"]),
        ([launch(False), FILL, launch(False), launch(True)], 1, ["launch", "fill", "launch"]),
        ([launch(False), launch(False), launch(True)], 1, ["launch", "dependent"]),
    ],
)
def test_only_a_launch_right_before_it_is_overlapped(
    steps: list[dict[str, Any]], drop: int | None, expected: list[str]
) -> None:
    assert put(steps, drop) == expected
