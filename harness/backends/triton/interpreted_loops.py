"""Loop indices for Triton's interpreter: plain integers there, with methods (``row.to(tl.int64)``) when compiled.

Loaded in the sandbox mode ``triton-interpret`` only.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import triton.language as tl
from triton.runtime import interpreter as triton_interpreter


class Index(int):
    """An integer that becomes a scalar of the language where it is asked for what only such a scalar has."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(tl.tensor, name):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(triton_interpreter._implicit_cvt(int(self)), name)


class Range:
    """``range`` whose items are ``Index``; everything else is the builtin's."""

    def __init__(self, *bounds: Any) -> None:
        self._plain = range(*(operator.index(bound) for bound in bounds))

    def __iter__(self) -> Iterator[Index]:
        return map(Index, self._plain)

    def __len__(self) -> int:
        return len(self._plain)

    def __getitem__(self, place: Any) -> Any:
        return self._plain[place]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


def install() -> None:
    """Make ``tl.range`` and ``tl.static_range`` count with ``Index``; the interpreter builds both from ``range``."""
    triton_interpreter.range = Range


def install_in(module: ModuleType) -> None:
    """The same for the plain ``range`` of a candidate, unless the candidate has a name of its own for it."""
    module.__dict__.setdefault("range", Range)
