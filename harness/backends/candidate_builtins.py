"""The builtins that a candidate is executed with: those its host code and kernel bodies may use, and an ``__import__``
that knows the allowed roots. The static stage refuses every other name; this is what holds where it should err."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from harness.domain.vocabulary import Backend
from harness.evaluation.static.allowed import HOST_BUILTINS

KERNEL_BUILTINS = frozenset({"complex", "AssertionError", "IndexError"})
"""What kernel bodies may name beyond host code."""
_ROOTS = {Backend.NUMBA: ("numba", "numpy", "math", "__future__"),
          Backend.TRITON: ("torch", "triton", "math", "__future__")}


def candidate_builtins(backend: Backend) -> dict[str, Any]:
    """A fresh ``__builtins__`` for one candidate module."""
    allowed = {name: getattr(builtins, name) for name in HOST_BUILTINS | KERNEL_BUILTINS}
    return {**allowed, "__import__": _import_of(_ROOTS[backend])}


def _import_of(roots: Sequence[str]) -> Any:
    python_import = builtins.__import__

    def import_allowed(name: str, globals: Mapping[str, Any] | None = None, locals: Mapping[str, Any] | None = None,
                       fromlist: Sequence[str] | None = (), level: int = 0) -> ModuleType:
        if level or name.partition(".")[0] not in roots:
            raise ImportError(f"A candidate may not import {name!r}. It may import {', '.join(roots[:-1])}.")
        return python_import(name, globals, locals, fromlist or (), level)

    return import_allowed
