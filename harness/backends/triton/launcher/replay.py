"""Repeats plans for a profiler that wraps this program; neither the candidate, Triton nor a clock is here.

Nothing but the plans' own launches lies inside the profiled range: each call runs once to load everything, and once
more between ``cuProfilerStart`` and ``cuProfilerStop``. The request is a file, because a profiler hands no socket on:
``{"index": 0, "calls": [{"document", "binaries", "arrays"}]}`` with plans and binaries as the launcher is sent them and
arrays as ``ports.Lent`` describes them, plus ``path``, the file with an input's contents; ``trial`` adds a launch of
the launcher's own, to see whether a profiler works at all. One line of JSON is printed: ``{"launches": n}``, or
``refused`` or ``fault`` (code, text).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from harness.backends.triton.launcher.arena import Arena, Block
from harness.backends.triton.launcher.call import check_arrays, poison_blocks, scratch_blocks, window
from harness.backends.triton.launcher.driver import Cuda, CudaError
from harness.backends.triton.launcher.graphs import Program
from harness.backends.triton.launcher.memory import mapped
from harness.backends.triton.launcher.own_kernels import THREADS, OwnKernels
from harness.backends.triton.launcher.program import HEALTH_BLOCKS, SHARED_OPTIN, load_plan
from harness.backends.triton.launcher.refused import PlanRefused

POISON = 0x7ABC


class Replay:
    """One device on which calls are repeated."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda, self._stream, self._optin = cuda, cuda.stream(), cuda.attribute(SHARED_OPTIN)
        self._arena = Arena(cuda, plain=True)  # a profiler saves and restores ordinary allocations best

    def call(self, asked: dict[str, Any]) -> int:
        """Run one call twice, the second time profiled; its number of launches.

        Raises:
            PlanRefused: plan, binaries and arrays do not fit together.
            CudaError: a kernel failed.
        """
        loaded = load_plan(self._cuda, asked, self._optin)
        check_arrays(loaded, asked["arrays"])
        blocks = [self._uploaded(array) for array in asked["arrays"]]
        scratch = scratch_blocks(self._arena, loaded)
        program = Program(self._cuda, loaded, [block.address for block in (*blocks, *scratch)])
        for profiled in (False, True):
            poison_blocks(self._cuda, self._stream, scratch, POISON)
            self._cuda.wait(self._stream)
            if profiled:
                self._cuda("cuProfilerStart")
            program.put(self._stream)
            self._cuda.wait(self._stream)
            if profiled:
                self._cuda("cuProfilerStop")
        self._arena.free([*blocks, *scratch])
        return len(loaded.functions)

    def trial(self) -> int:
        """One launch of an own kernel, profiled."""
        own = OwnKernels(self._cuda)
        block = self._arena.allocate(8 * HEALTH_BLOCKS * THREADS)
        self._cuda("cuProfilerStart")
        own.health(self._stream, block.address, 1, HEALTH_BLOCKS)
        self._cuda.wait(self._stream)
        self._cuda("cuProfilerStop")
        self._arena.free([block])
        return 1

    def _uploaded(self, array: dict[str, Any]) -> Block:
        """An argument on the device; outputs hold what the allocator left."""
        start, count = window(array, True)
        block = self._arena.allocate(count)
        if array["kind"] == "input":
            with mapped(os.open(array["path"], os.O_RDONLY | os.O_CLOEXEC), int(array["nbytes"])) as view:
                self._cuda.upload(block.address, view + start, count)
        return block


def answer(request: dict[str, Any], open_cuda: type[Cuda] = Cuda) -> dict[str, Any]:
    """What became of a request; see the module's docstring."""
    try:
        replay = Replay(open_cuda(int(request["index"])))
        tried = replay.trial() if request.get("trial") else 0
        return {"launches": tried + sum(replay.call(asked) for asked in request["calls"])}
    except PlanRefused as refused:
        return {"refused": [refused.code, refused.text]}
    except CudaError as error:
        return {"fault": [error.fault, str(error)]}
    except OSError as error:
        return {"fault": ["driver_error", str(error)]}


def main() -> None:
    """Serve the request file named on the command line."""
    sys.modules["triton"] = None  # type: ignore[assignment]  # nothing of it may load here
    request = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    sys.stdout.write(json.dumps(answer(request)) + "\n")
    sys.stdout.flush()
