"""What an output holds before it is written. One rule for single calls and for the clock, on processors and devices
alike: a kernel that reads its output first must not learn where it runs. Imports nothing."""

from __future__ import annotations

HUGE, HUGE_HALF = 227 << 7, 29 << 10
"""Sign, exponent and no mantissa of a huge finite number, alone (bfloat16, float16) or repeated (float32: 1.3e30); in
integers a large positive number."""


def output_poison(dtype: str, drawn: int) -> int:
    """Sixteen bits that are repeated over an output of ``dtype``, with the low bits of ``drawn``."""
    return HUGE_HALF | drawn & 0x3FF if dtype == "float16" else HUGE | drawn & 0x7F
