"""A plan on a set of addresses, put into a stream or captured as a graph that replays it."""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_size_t, c_uint, c_ulonglong, c_ushort, c_void_p
from dataclasses import dataclass
from typing import Any

from harness.backends.triton.launcher.binding import Bound
from harness.backends.triton.launcher.driver import Cuda
from harness.backends.triton.launcher.modules import Function
from harness.domain.plan import LaunchPlan

THREAD_LOCAL = 1


@dataclass(frozen=True, slots=True)
class Loaded:
    """A validated plan with its loaded functions, one per launch in order."""

    plan: LaunchPlan
    functions: tuple[Function, ...]

    @property
    def scratch(self) -> tuple[int, ...]:
        """Numbers of the buffers that are neither inputs nor outputs."""
        return tuple(buffer.id for buffer in self.plan.buffers if buffer.kind not in ("input", "output"))


class Program:
    """The steps of a plan, bound to addresses."""

    def __init__(self, cuda: Cuda, loaded: Loaded, addresses: list[int], drop: int | None = None) -> None:
        """``drop`` leaves one launch out."""
        self._cuda = cuda
        self._steps: list[Bound | tuple[int, dict[str, Any]]] = []
        functions = iter(enumerate(loaded.functions))
        for step in loaded.plan.steps:
            if "fill" in step:
                fill = step["fill"]
                self._steps.append((addresses[fill["buffer"]] + fill["offset"], fill))
                continue
            number, function = next(functions)
            if number != drop:
                # Only a launch of this call right before it can let a launch begin early. Behind a fill, or where
                # nothing of this call comes before, there is nothing that it could overlap with.
                follows = bool(self._steps) and isinstance(self._steps[-1], Bound)
                launch = step["launch"] if follows else {**step["launch"], "pdl": False}
                self._steps.append(Bound(cuda, function, launch, addresses))

    def put(self, stream: c_void_p) -> None:
        """All steps into ``stream``, in order."""
        for step in self._steps:
            if isinstance(step, Bound):
                step.launch(stream)
            else:
                fill(self._cuda, stream, *step)


def fill(cuda: Cuda, stream: c_void_p, address: int, facts: dict[str, Any]) -> None:
    """One memset step; patterns of one, two or four bytes, little endian."""
    pattern = bytes.fromhex(facts["pattern"])
    value, count = int.from_bytes(pattern, "little"), c_size_t(facts["bytes"] // len(pattern))
    if len(pattern) == 1:
        cuda("cuMemsetD8Async", c_ulonglong(address), c_char(value), count, stream)
    elif len(pattern) == 2:
        cuda("cuMemsetD16Async", c_ulonglong(address), c_ushort(value), count, stream)
    else:
        cuda("cuMemsetD32Async", c_ulonglong(address), c_uint(value), count, stream)


class Graph:
    """Programs captured one after the other."""

    def __init__(self, cuda: Cuda, stream: c_void_p, programs: list[Program]) -> None:
        self._cuda, self._programs = cuda, programs  # programs own the memory that parameters were read from
        graph, executable = c_void_p(), c_void_p()
        cuda("cuStreamBeginCapture_v2", stream, c_uint(THREAD_LOCAL))
        try:
            for program in programs:
                program.put(stream)
        finally:
            code = cuda.attempt("cuStreamEndCapture", stream, ctypes.byref(graph))
        if code:
            cuda.fail("cuStreamEndCapture", code)
        try:
            cuda("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, c_ulonglong(0))
        finally:
            cuda("cuGraphDestroy", graph)
        self._executable = executable
        cuda("cuGraphUpload", executable, stream)

    def launch(self, stream: c_void_p) -> None:
        """Replay once."""
        self._cuda("cuGraphLaunch", self._executable, stream)

    def close(self) -> None:
        """Give the graph back; the device must be idle."""
        self._cuda("cuGraphExecDestroy", self._executable)
