"""Sizes of the arrays that a launcher is lent, from their documents."""

from __future__ import annotations

from typing import Any

from harness.backends.triton.launcher.refused import PlanRefused

ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8}


def item_bytes(dtype: str) -> int:
    """Bytes of one element.

    Raises:
        PlanRefused: a dtype that no operator has.
    """
    if dtype not in ITEM_BYTES:
        raise PlanRefused("unsupported", f"An array of {dtype}.")
    return ITEM_BYTES[dtype]


def span_bytes(array: dict[str, Any]) -> int:
    """Bytes from the first to the last element of an array, rows apart as their strides say. Raises ``PlanRefused``."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(array["shape"], array["strides"], strict=True))
    return span * item_bytes(array["dtype"])
