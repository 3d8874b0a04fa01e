"""A launch's arguments in the binary's own order, from what Triton hands to its launcher. No torch, no Triton here.

Compile-time constants vanish, tuples are flattened, a host descriptor becomes its tensor map followed by the shape
(i32) and the strides (i64). Scalars are bytes, never JSON numbers.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

_INTEGERS = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u1": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8}
_FLOATS = {"fp64": "<d", "fp16": "<e"}


class Unpackable(ValueError):
    """An argument of a type that plans cannot hold: ``path`` names it."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(text)
        self.path, self.text = path, text


class Pointers(Protocol):
    """How a caller names memory."""

    def pointer(self, path: str, value: Any) -> dict[str, Any]:
        """A pointer argument (a tensor, ``None`` or what Triton takes for one) as a plan value."""
        ...

    def integer(self, path: str, number: int) -> None:
        """Told of every integer argument."""
        ...


def flatten(
    signature: Mapping[str, Any], values: Sequence[Any], descriptors: Any, pointers: Pointers
) -> list[dict[str, Any]]:
    """Plan arguments for ``values`` (all bound arguments in declaration order).

    ``descriptors`` is the compiler's list of tensor-map facts.

    Raises:
        Unpackable: an argument that plans cannot hold.
    """
    pending = list(descriptors or [])
    result: list[dict[str, Any]] = []
    for (name, kind), value in zip(signature.items(), values, strict=True):
        _append(name, kind, value, pending, pointers, result)
    return result


def _append(
    path: str, kind: Any, value: Any, pending: list[Any], pointers: Pointers, result: list[dict[str, Any]]
) -> None:
    if isinstance(kind, tuple | list):
        for position, (inner, item) in enumerate(zip(kind, value, strict=True)):
            _append(f"{path}.{position}", inner, item, pending, pointers, result)
    elif kind == "constexpr":
        return
    elif kind.startswith("tensordesc"):
        result.extend(_descriptor(path, value, pending.pop(0) if pending else None, pointers))
    elif kind.startswith("*"):
        result.append(pointers.pointer(path, value))
    else:
        result.append(_scalar(path, kind, value, pointers))


def _scalar(path: str, kind: str, value: Any, pointers: Pointers) -> dict[str, Any]:
    """A number packed by Triton's own rules: floats from double, bfloat16 truncated."""
    if kind in _INTEGERS:
        number = int(value)
        pointers.integer(path, number)
        width = _INTEGERS[kind]
        data = (number & ((1 << (8 * width)) - 1)).to_bytes(width, "little")
    elif kind in ("fp32", "f32"):
        data = _single(value)
    elif kind == "bf16":
        data = _single(value)[2:]
    elif kind in _FLOATS:
        data = struct.pack(_FLOATS[kind], float(value))
    else:
        raise Unpackable(path, f"has type {kind}, which a plan cannot hold")
    return {"scalar": kind, "hex": data.hex()}


def _single(value: Any) -> bytes:
    """The nearest float32; beyond its range infinite, as the C cast of the native launcher."""
    try:
        return struct.pack("<f", float(value))
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, value))


def _descriptor(path: str, value: Any, facts: Any, pointers: Pointers) -> list[dict[str, Any]]:
    if facts is None:
        raise Unpackable(path, "is a descriptor that is not lowered to a tensor map on this target; use "
                               "tl.make_tensor_descriptor in the kernel function")
    facts = facts if isinstance(facts, dict) else dict(facts)
    shape, strides = [int(n) for n in value.shape], [int(n) for n in value.strides]
    body = {
        **pointers.pointer(path, value.base),
        "box": [int(n) for n in facts["block_size"]],
        "swizzle": int(facts["swizzle"]),
        "element_bytes": int(facts["elem_size"]),
        "element_type": int(facts["elem_type"]),
        "fp4_padded": bool(facts.get("fp4_padded", False)),
        "shape": shape,
        "strides": strides,
        "padding": str(value.padding),
        "tf32": bool(getattr(value, "round_f32_to_tf32", False)),
    }
    tail = [_scalar(path, "i32", n, pointers) for n in shape] + [_scalar(path, "i64", n, pointers) for n in strides]
    return [{"tensormap": body}, *tail]
