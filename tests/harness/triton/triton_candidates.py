"""Small candidates and argument documents for the tests of this folder."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

PRELUDE = """\
import torch; __builtins__.update(torch.__builtins__)
import math, threading
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

STATE = {}


@triton.jit
def _copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def _scale(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)


"""


def argument(name: str, kind: str, dtype: str, shape: Sequence[int], offset: int = 0) -> dict[str, Any]:
    """A dense argument document."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return {"name": name, "kind": kind, "dtype": dtype, "shape": list(shape), "strides": strides, "offset": offset}


ARGUMENTS = [
    argument("x", "input", "float32", (64, 256)),
    argument("lens", "input", "int32", (64,)),
    argument("out", "output", "float32", (64, 256)),
]


def candidate(body: str, before: str = "") -> str:
    """A candidate whose ``run(x, lens, out)`` has this body; ``before`` goes to module level."""
    return (
        PRELUDE
        + textwrap.dedent(before)
        + "\n\ndef run(x, lens, out):\n"
        + textwrap.indent(textwrap.dedent(body).strip(), "    ")
        + "\n"
    )
