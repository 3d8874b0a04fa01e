"""The child of mode ``triton-plan``: imports one candidate and records its launches."""

from __future__ import annotations

import os
import tempfile
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
    """Import everything a child needs, in the server, before any fork. Starts no thread."""
    # Before numpy and torch load: their pools would be threads alive at the fork.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TRITON_DISABLE_LINE_INFO"):
        os.environ[name] = "1"
    from torch.utils._python_dispatch import TorchDispatchMode
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend
    from triton.runtime.cache import triton_key

    from harness.backends.triton.recorder import ircapture, record  # noqa: F401
    from harness.backends.triton.targets import TARGETS

    with TorchDispatchMode():  # its first use imports much of torch
        pass
    triton_key()
    for target in TARGETS.values():
        make_backend(GPUTarget("cuda", target.capability, target.warp)).hash()
    ircapture.install()


def serve(channel: Channel) -> None:
    """Answer ``load`` and ``record`` requests until the judge is gone.

    ``{"op": "load", "source": "...", "target": "nvidia-h200"}`` -> ``{"ok": true}``;
    ``{"op": "record", "arguments": [...], "attributes": {...}}`` -> ``{"plan": {...}}``;
    a failure of the candidate -> ``{"fault": {"outcome", "code", "text", "line"}}``.
    """
    child = _Child()
    while True:
        request, _ = channel.receive()
        channel.send(child.answer(request))


class _Child:
    def __init__(self) -> None:
        self._module: ModuleType | None = None
        self._target: Any = None
        self._calls = 0

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        from harness.backends.triton.sandbox.candidate import failure, fault

        operation = request.get("op")
        if operation == "load":
            try:
                self._load(request)
            except BaseException as error:  # noqa: BLE001 - whatever the candidate raises is its verdict
                return failure(error, "The import")
            if not callable(getattr(self._module, "run", None)):
                return fault("policy_violation", "run_missing", "The file defines no function run.")
            return {"ok": True}
        if operation == "record" and self._module is not None:
            from harness.backends.triton.recorder.record import record

            self._calls += 2
            try:
                return {"plan": record(self._module.run, self._target, request["arguments"], request["attributes"],
                                       first=self._calls - 2)}
            except BaseException as error:  # noqa: BLE001
                return failure(error, "run()")
        return fault("infra_error", "protocol", f"The child does not know the request '{operation}'.")

    def _load(self, request: dict[str, Any]) -> None:
        import triton
        from triton import knobs

        from harness.backends.triton.recorder import host
        from harness.backends.triton.recorder.driver import RecorderDriver
        from harness.backends.triton.sandbox.candidate import import_candidate
        from harness.backends.triton.targets import find_target

        knobs.cache.dir = tempfile.mkdtemp(prefix="cache")
        self._target = find_target(request.get("target"))
        triton.runtime.driver.set_active(RecorderDriver(self._target))
        host.install(self._target)
        self._module = import_candidate(request["source"])
