"""The launcher's main loop. Started with a socket; imports neither Triton nor torch; ends with the first dead context.

Requests and answers are frames of ``harness.evaluation.sandbox.frames``; memory files travel beside them. Answers carry
``refused`` (code, text) or ``fault`` (code, text, dead) instead of a result where there is none.
"""

from __future__ import annotations

import base64
import ctypes
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable
from ctypes import c_char, c_size_t, c_ulonglong
from typing import Any

from harness.backends.triton.launcher import steady
from harness.backends.triton.launcher.arena import Arena
from harness.backends.triton.launcher.call import call
from harness.backends.triton.launcher.contents import Contents
from harness.backends.triton.launcher.driver import Cuda, CudaError
from harness.backends.triton.launcher.graphs import Loaded
from harness.backends.triton.launcher.modules import load_function, parameter_sizes
from harness.backends.triton.launcher.own_kernels import THREADS, OwnKernels
from harness.backends.triton.launcher.refused import PlanRefused
from harness.backends.triton.launcher.rounds import Round
from harness.backends.triton.launcher.validate import check_parameters, check_plan
from harness.domain.plan import LaunchPlan, PlanBuffer
from harness.evaluation.sandbox import frames

PERSISTING_L2 = 6
L2_BYTES, MULTIPROCESSORS, SHARED_OPTIN, MAJOR, MINOR = 38, 16, 97, 75, 76
ROOF_BYTES = 2 << 30
HEALTH_BLOCKS = 64
KEPT_SHARE = 8
"""First contents of rounds may stay in one part of so many of the device's memory."""


class Launcher:
    """The device, loaded plans and the round that is open."""

    def __init__(self, index: int, *, exact: bool) -> None:
        self.cuda = Cuda(index)
        self.exact = exact
        self.stream = self.cuda.stream()
        self.own = OwnKernels(self.cuda)
        self.cuda.attempt("cuCtxSetLimit", ctypes.c_int(PERSISTING_L2), c_size_t(0))
        self.arena = Arena(self.cuda, plain=exact)
        self.contents = Contents(self.cuda, plain=exact, most_bytes=self._memory() // KEPT_SHARE)
        self.optin = self.cuda.attribute(SHARED_OPTIN)
        self.l2_bytes = self.cuda.attribute(L2_BYTES)
        self._loaded: dict[int, Loaded] = {}
        self._round: Round | None = None

    def info(self) -> dict[str, Any]:
        """What ``DeviceInfo`` holds."""
        name, uuid = (c_char * 128)(), (c_char * 16)()
        self.cuda("cuDeviceGetName", name, ctypes.c_int(128), ctypes.c_int(self.cuda.device))
        self.cuda("cuDeviceGetUuid_v2", uuid, ctypes.c_int(self.cuda.device))
        version = self.cuda.version
        return {
            "name": name.value.decode(), "driver": f"{version // 1000}.{version % 1000 // 10}",
            "capability": 10 * self.cuda.attribute(MAJOR) + self.cuda.attribute(MINOR),
            "multiprocessors": self.cuda.attribute(MULTIPROCESSORS), "l2_bytes": self.l2_bytes,
            "memory_bytes": self._memory(), "shared_optin": self.optin, "uuid": bytes(uuid).hex(),
        }

    def _memory(self) -> int:
        total = c_size_t()
        self.cuda("cuDeviceTotalMem_v2", ctypes.byref(total), ctypes.c_int(self.cuda.device))
        return total.value

    def answer(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """The result of one request. Raises ``PlanRefused`` and ``CudaError``."""
        operation = request["op"]
        if operation == "load":
            return self._load(request)
        if operation == "call":
            self._end_round()
            return call(self.cuda, self.arena, self.own, self.stream, self._loaded[request["plan"]], request["arrays"],
                        fds, drop=request["drop"], poison=request["poison"], exact=self.exact)
        if operation == "round":
            return self._run_round(request, fds)
        if operation == "slope":
            assert self._round is not None
            calls, seconds = self._round.slope(request["side"], request["times"])
            return {"calls": calls, "seconds": seconds}
        if operation == "end_round":
            self._end_round()
            return {}
        if operation == "health":
            return {"healthy": self._health()}
        if operation == "roofs":
            return self._roofs()
        raise PlanRefused("unsupported", f"The launcher does not know the request '{operation}'.")

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        self._loaded[len(self._loaded)] = load_plan(self.cuda, request, self.optin)
        return {"plan": len(self._loaded) - 1}

    def _run_round(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self._end_round()
        sides = {name: self._loaded[number] for name, number in request["sides"].items()}
        self._round = Round(self.cuda, self.arena, self.contents, self.own, self.stream, request, sides, fds[:-1],
                            self.l2_bytes)
        answer = self._round.run()
        kept = b"".join(answer.pop("kept"))
        with os.fdopen(fds[-1], "r+b", buffering=0) as file:
            file.write(kept)
        return answer

    def forget(self) -> None:
        """Give back whatever a request that failed has left behind."""
        self._round = None
        self.arena.clear()
        self.contents.clear()

    def _end_round(self) -> None:
        if self._round is not None:
            self._round.close()
            self._round = None

    def _health(self) -> bool:
        key = secrets.randbits(63)
        block = self.arena.allocate(8 * HEALTH_BLOCKS * THREADS)
        self.own.health(self.stream, block.address, key, HEALTH_BLOCKS)
        self.cuda.wait(self.stream)
        words = (c_ulonglong * (HEALTH_BLOCKS * THREADS))()
        self.cuda.download(words, block.address, 8 * len(words))
        self.arena.free([block])
        return all(word == (index * 0x9E3779B97F4A7C15 + key) & (2**64 - 1) for index, word in enumerate(words))

    def _roofs(self) -> dict[str, Any]:
        """The best seen: bytes per second of a copy (read plus written) and of reading alone."""
        self._end_round()
        one, two, total = (self.arena.allocate(size) for size in (ROOF_BYTES, ROOF_BYTES, 8))
        start, end = self.cuda.event(), self.cuda.event()

        def took_us(work: Callable[[], None]) -> float:
            self.cuda("cuEventRecord", start, self.stream)
            work()
            self.cuda("cuEventRecord", end, self.stream)
            self.cuda.wait(self.stream)
            return self.cuda.elapsed_us(start, end)

        def copy() -> None:
            self.cuda("cuMemcpyDtoDAsync_v2", c_ulonglong(two.address), c_ulonglong(one.address), c_size_t(ROOF_BYTES),
                      self.stream)

        def read() -> None:
            self.own.read(self.stream, one.address, ROOF_BYTES, total.address)

        copy_us, read_us = steady.least([lambda: took_us(copy), lambda: took_us(read)])
        self.arena.free([one, two, total])
        return {"copy": 2 * ROOF_BYTES / copy_us * 1e6, "read": ROOF_BYTES / read_us * 1e6}


def load_plan(cuda: Cuda, request: dict[str, Any], optin: int) -> Loaded:
    """Validate the plan ``document`` of a request and load its ``binaries``.

    Raises:
        PlanRefused: before anything ran.
    """
    plan, binaries = read_plan(request["document"]), request["binaries"]
    check_plan(plan, sum(buffer.kind in ("input", "output") for buffer in plan.buffers), binaries)
    launches = [step["launch"] for step in plan.steps if "launch" in step]
    functions = []
    for launch, binary in zip(launches, binaries, strict=True):
        function = load_function(cuda, binary, base64.b64decode(binary["cubin"]), optin)
        check_parameters(launch, parameter_sizes(cuda, function))
        functions.append(function)
    return Loaded(plan, tuple(functions))


def read_plan(document: dict[str, Any]) -> LaunchPlan:
    """The plan that the judge sends, which it validated against the schema before."""
    buffers = tuple(
        PlanBuffer(**{**buffer, "shape": tuple(buffer["shape"]), "strides": tuple(buffer["strides"])})
        for buffer in document["buffers"]
    )
    return LaunchPlan(document["target"], document["compiler"], document["second_call"], buffers,
                      tuple(document["steps"]))


def main() -> None:
    """Serve the socket named on the command line until the judge is gone or the context is dead."""
    sys.modules["triton"] = None  # type: ignore[assignment]  # nothing of it may load here
    channel = socket.socket(fileno=int(sys.argv[1]))
    began = time.monotonic()
    try:
        launcher = Launcher(int(sys.argv[2]), exact=sys.argv[3] == "exact")
    except (OSError, CudaError) as error:
        frames.send(channel, {"absent": str(error)})
        return
    frames.send(channel, {"info": launcher.info(), "seconds": time.monotonic() - began})
    while True:
        try:
            request, fds = frames.receive(channel)
        except frames.FrameError:
            return
        try:
            answer = launcher.answer(request, fds)
        except PlanRefused as refused:
            launcher.forget()
            answer = {"refused": [refused.code, refused.text]}
        except CudaError as error:
            answer = {"fault": [error.fault, str(error), error.dead]}
            if error.dead:
                frames.send(channel, answer)
                os._exit(1)  # its destructors would fail on a dead context
            launcher.forget()
        frames.send(channel, answer)
