"""The child of sandbox mode ``triton-plan``: imports one candidate and records its launches."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol


class Channel(Protocol):
    """The child's end of the sandbox protocol."""

    def receive(self) -> tuple[dict[str, Any], list[int]]:
        """The next request and its descriptors."""
        ...

    def send(self, document: dict[str, Any]) -> None:
        """The answer."""
        ...


def preload() -> None:
    """Import everything a child needs, in the server, before its root shrinks and it forks. Starts no thread."""
    # Before numpy and torch load: their pools would be threads alive at the fork.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TRITON_DISABLE_LINE_INFO"):
        os.environ[name] = "1"
    import triton.experimental.gluon
    import triton.language.extra.libdevice
    import triton.tools.tensor_descriptor  # noqa: F401
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend
    from triton.runtime.cache import triton_key

    from harness.backends.triton import candidate  # noqa: F401
    from harness.backends.triton.recorder import driver, host, ircapture, record  # noqa: F401
    from harness.backends.triton.targets import TARGETS

    # What keys Triton's cache: its own files and ptxas, which children could neither read at once nor run.
    triton_key()
    for target in TARGETS.values():
        make_backend(GPUTarget("cuda", target.capability, target.warp)).hash()
    ircapture.install()


def serve(channel: Channel) -> None:
    """Answer requests until the judge is gone; every answer repeats the request's ``id``.

    ``{"op": "load", "source": "...", "options": {"target": "nvidia-h200"}}`` -> ``{"ok": true}``;
    ``{"op": "record", "arguments": [...], "attributes": {...}}`` -> ``{"plan": {...}}``;
    a failure of the candidate -> ``{"fault": {"outcome", "code", "text", "line"}}``.
    """
    child = PlanChild()
    while True:
        request, _ = channel.receive()
        channel.send({"id": request.get("id"), **child.answer(request)})


class PlanChild:
    """One candidate's process."""

    def __init__(self) -> None:
        self._module: ModuleType | None = None
        self._target: Any = None
        self._calls = 0

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer document to one request."""
        from harness.backends.triton.candidate import fault

        operation = request.get("op")
        if operation == "load":
            return guarded(lambda: self._load(request), "The import")
        if operation == "record" and self._module is not None:
            return guarded(lambda: self._record(request), "run()")
        return fault("runtime_error", "protocol", f"The child does not know the request '{operation}'.")

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        import triton
        from triton import knobs

        from harness.backends.triton.candidate import import_candidate, missing_run
        from harness.backends.triton.recorder import host
        from harness.backends.triton.recorder.driver import RecorderDriver
        from harness.backends.triton.targets import find_target

        knobs.cache.dir = tempfile.mkdtemp(prefix="cache")
        self._target = find_target((request.get("options") or {}).get("target"))
        triton.runtime.driver.set_active(RecorderDriver(self._target))
        host.install(self._target)
        self._module = import_candidate(request["source"])
        return missing_run(self._module) or {"ok": True}

    def _record(self, request: dict[str, Any]) -> dict[str, Any]:
        from harness.backends.triton.recorder.record import record

        first, self._calls = self._calls, self._calls + 2
        assert self._module is not None
        plan = record(self._module.run, self._target, request["arguments"], request["attributes"], first=first)
        return {"plan": plan}


def guarded(work: Callable[[], dict[str, Any]], doing: str) -> dict[str, Any]:
    """The result of ``work``, or the candidate's exception as a fault."""
    from harness.backends.triton.candidate import failure

    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - whatever the candidate raises is its verdict
        return failure(error, doing)
