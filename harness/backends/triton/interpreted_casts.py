"""Conversions between float32 and bfloat16 for Triton's interpreter, which cuts bits off where a device rounds.

A device rounds to nearest, ties to even, unless the kernel asks for another mode; cut results are off by up to a whole
unit of bfloat16 in half of all cases. Loaded in the sandbox mode ``triton-interpret`` only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as triton_interpreter

_QUIET = np.uint16(0x7FC0)


def install() -> None:
    """Replace the two conversions; all others stay the interpreter's own."""
    native = triton_interpreter._convert_float
    towards_zero = triton_interpreter._ir.ROUNDING_MODE.RTZ

    def convert(values: Any, source: Any, target: Any, mode: Any) -> Any:
        if source == tl.float32 and target == tl.bfloat16:
            return narrowed(values, towards_zero=mode == towards_zero)
        if source == tl.bfloat16 and target == tl.float32:
            return widened(values)
        return native(values, source, target, mode)

    triton_interpreter._convert_float = convert


def narrowed(values: np.ndarray, *, towards_zero: bool = False) -> np.ndarray:
    """float32 as the bits of bfloat16 (uint16), of the same shape; every NaN becomes a quiet one of its sign."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    half = np.uint32(0) if towards_zero else np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    special = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
    kept = np.where(special, bits, bits + half)
    result = (kept >> np.uint32(16)).astype(np.uint16)
    quiet = (bits >> np.uint32(16)).astype(np.uint16) & np.uint16(0x8000) | _QUIET
    return np.where(np.isnan(values), quiet, result).reshape(np.shape(values))


def widened(values: np.ndarray) -> np.ndarray:
    """The bits of bfloat16 (uint16) as float32, of the same shape; exact."""
    bits = np.ascontiguousarray(values).view(np.uint16).astype(np.uint32) << np.uint32(16)
    return bits.view(np.float32).reshape(np.shape(values))
