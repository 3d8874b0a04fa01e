"""The child of sandbox mode ``triton-interpret``: runs a candidate on CPU tensors with Triton's interpreter.

The server's environment holds ``TRITON_INTERPRET=1`` before Triton is imported.
"""

from __future__ import annotations

import os
import time
from types import ModuleType
from typing import Any, Protocol

from harness.backends.triton.plan_child import guarded


class Channel(Protocol):
    """The child's end of the sandbox protocol, with lent memory."""

    def receive(self) -> tuple[dict[str, Any], list[int]]:
        """The next request and its descriptors."""
        ...

    def send(self, document: dict[str, Any]) -> None:
        """The answer."""
        ...

    def lend(self, fd: int, nbytes: int) -> Any:
        """Map a memory file of ``nbytes`` bytes and close ``fd``; a writable ctypes array."""
        ...

    def release(self) -> None:
        """Unmap everything lent."""
        ...


def preload() -> None:
    """Import everything a child needs, in the server, before any fork. Starts no thread."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TRITON_INTERPRET"):
        os.environ[name] = "1"
    import torch
    import triton.language.extra.libdevice
    import triton.tools.tensor_descriptor  # noqa: F401

    from harness.backends.triton import candidate, interpreter  # noqa: F401

    with torch.overrides.TorchFunctionMode():
        pass


def serve(channel: Channel) -> None:
    """Answer ``load`` and ``call`` requests until the judge is gone; every answer repeats the request's ``id``.

    ``call`` carries ``arrays`` (name, kind, dtype, shape, strides, offset, nbytes, fd as an index into the
    descriptors sent) and ``attributes``; the answer is ``{"claimed_s": seconds}`` or a fault.
    """
    child = InterpretChild(channel)
    while True:
        request, fds = channel.receive()
        channel.send({"id": request.get("id"), **child.answer(request, fds)})


class InterpretChild:
    """One candidate's process."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._module: ModuleType | None = None

    def answer(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """The answer document to one request."""
        from harness.backends.triton.candidate import fault

        operation = request.get("op")
        if operation == "load":
            return guarded(lambda: self._load(request), "The import")
        if operation == "call" and self._module is not None:
            try:
                return guarded(lambda: self._call(request, fds), "run()")
            finally:
                self._channel.release()
        for fd in fds:
            os.close(fd)
        return fault("runtime_error", "protocol", f"The child does not know the request '{operation}'.")

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        from harness.backends.triton import interpreted_loops, interpreter
        from harness.backends.triton.candidate import import_candidate, missing_run
        from harness.backends.triton.targets import find_target

        interpreter.install(find_target((request.get("options") or {}).get("target")))
        self._module = import_candidate(request["source"])
        interpreted_loops.install_in(self._module)
        return missing_run(self._module) or {"ok": True}

    def _call(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        from harness.backends.triton import interpreter

        assert self._module is not None
        sizes: dict[int, int] = {array["fd"]: array["nbytes"] for array in request["arrays"]}
        memory = {index: self._channel.lend(fds[index], nbytes) for index, nbytes in sizes.items()}
        tensors = [interpreter.tensor(memory[array["fd"]], array) for array in request["arrays"]]
        began = time.perf_counter()
        interpreter.call(self._module.run, tensors, request["attributes"])
        return {"claimed_s": time.perf_counter() - began}
