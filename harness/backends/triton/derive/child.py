"""The child of sandbox mode ``triton-derive``: compiles one file's kernel functions to IR, as recorded launches ask.

It gets what ``cut.kernel_source`` leaves of a candidate, never the host code, and the arguments of the recording by
kind alone: signature, constants, divisibility and options.
"""

from __future__ import annotations

import os
import tempfile
from types import ModuleType
from typing import Any, NoReturn

from harness.backends.triton.plan_child import Channel, guarded


class _Captured(Exception):
    def __init__(self, text: str, kind: str) -> None:
        super().__init__("captured")
        self.text, self.kind = text, kind


def preload() -> None:
    """Import Triton, without torch, in the server; compiling stops where the IR is. Starts no thread."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TRITON_DISABLE_LINE_INFO"):
        os.environ[name] = "1"
    import triton.experimental.gluon
    import triton.language.extra.libdevice
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.compiler.compiler import make_backend
    from triton.experimental.gluon.language import _layouts  # noqa: F401
    from triton.runtime import cache

    from harness.backends.triton import candidate  # noqa: F401
    from harness.backends.triton.recorder import constants  # noqa: F401
    from harness.backends.triton.targets import TARGETS

    cache.triton_key = lambda: triton.__version__  # every process has a cache of its own
    for target in TARGETS.values():
        make_backend(GPUTarget("cuda", target.capability, target.warp)).hash()
    make_ttir, gluon_to_ttgir = CUDABackend.make_ttir, CUDABackend.gluon_to_ttgir

    def stop_at_ttir(mod: Any, metadata: dict[str, Any], opt: Any, capability: int) -> NoReturn:
        raise _Captured(make_ttir(mod, metadata, opt, capability).str_nodebug(), "ttir")

    def stop_at_ttgir(self: Any, src: Any, metadata: dict[str, Any], options: Any, capability: int) -> NoReturn:
        raise _Captured(gluon_to_ttgir(self, src, metadata, options, capability).str_nodebug(), "ttgir")

    CUDABackend.make_ttir = staticmethod(stop_at_ttir)
    CUDABackend.gluon_to_ttgir = stop_at_ttgir


def serve(channel: Channel) -> None:
    """Answer requests until the judge is gone; every answer repeats the request's ``id``.

    ``{"op": "load", "source": "...", "options": {"target": "nvidia-h200"}}`` -> ``{"ok": true}``;
    ``{"op": "derive", "launch": {"function", "signature", "constants", "divisible", "options"}}`` ->
    ``{"ir": "...", "kind": "ttir"}``; a failure -> ``{"fault": {...}}``.
    """
    child = DeriveChild()
    while True:
        request, _ = channel.receive()
        channel.send({"id": request.get("id"), **child.answer(request)})


class DeriveChild:
    """One file's process."""

    def __init__(self) -> None:
        self._module: ModuleType | None = None
        self._target: Any = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer document to one request."""
        from harness.backends.triton.candidate import fault

        operation = request.get("op")
        if operation == "load":
            return guarded(lambda: self._load(request), "The import of the kernel functions")
        if operation == "derive" and self._module is not None:
            name = request["launch"]["function"]
            return guarded(lambda: self._derive(request["launch"]), f"Kernel function '{name}'")
        return fault("runtime_error", "protocol", f"The child does not know the request '{operation}'.")

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        from triton import knobs
        from triton.backends.compiler import GPUTarget

        from harness.backends.triton.candidate import import_candidate
        from harness.backends.triton.targets import find_target

        knobs.cache.dir = tempfile.mkdtemp(prefix="cache")
        target = find_target((request.get("options") or {}).get("target"))
        self._target = GPUTarget("cuda", target.capability, target.warp)
        self._module = import_candidate(request["source"])
        return {"ok": True}

    def _derive(self, launch: dict[str, Any]) -> dict[str, Any]:
        from triton.compiler.compiler import ASTSource, make_backend
        from triton.compiler.compiler import compile as triton_compile
        from triton.experimental.gluon._runtime import GluonASTSource
        from triton.runtime.jit import JITFunction

        from harness.backends.triton.recorder.constants import decode

        functions = {name: value for name, value in vars(self._module).items() if isinstance(value, JITFunction)}
        function = functions[launch["function"]]
        names = list(function.arg_names)
        signature = {name: _tuples(launch["signature"][name]) for name in names}
        constants = {_path(names, path): decode(value, functions) for path, value in launch["constants"].items()}
        attributes = {_path(names, path): [["tt.divisibility", n]] for path, n in launch["divisible"].items()}
        options = {"debug": False, **{key: value for key, value in launch["options"].items() if value is not None}}
        kind = GluonASTSource if function.is_gluon() else ASTSource
        try:
            triton_compile(kind(function, signature, constants, attributes), target=self._target,
                           options=make_backend(self._target).parse_options(options).__dict__)
        except _Captured as captured:
            return {"ir": captured.text, "kind": captured.kind}
        raise RuntimeError("the compiler went past the IR without making any")


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _path(names: list[str], dotted: str) -> tuple[int, ...]:
    name, *rest = dotted.split(".")
    return (names.index(name), *map(int, rest))
