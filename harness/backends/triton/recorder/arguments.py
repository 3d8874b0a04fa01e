"""A launch's arguments in the binary's own order, as plan values. Scalars are bytes, never JSON numbers."""

from __future__ import annotations

import struct
from typing import Any

import torch

from harness.backends.triton.recorder.session import Session
from harness.backends.triton.recorder.standin import StandIn, pattern_of

_INTEGERS = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u1": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8}
_FLOATS = {"fp32": "<f", "f32": "<f", "fp64": "<d"}


def flatten(
    session: Session, signature: dict[str, Any], values: tuple[Any, ...], descriptors: Any
) -> list[dict[str, Any]]:
    """Plan arguments for ``values`` (all bound arguments in declaration order).

    Compile-time constants vanish, tuples are flattened, a host descriptor becomes its tensor map followed by
    the shape (i32) and the strides (i64). ``descriptors`` is the compiler's list of tensor-map facts.
    """
    pending = list(descriptors or [])
    result: list[dict[str, Any]] = []
    for (name, kind), value in zip(signature.items(), values, strict=True):
        _append(session, name, kind, value, pending, result)
    return result


def _append(
    session: Session, path: str, kind: Any, value: Any, pending: list[Any], result: list[dict[str, Any]]
) -> None:
    if isinstance(kind, tuple | list):
        for position, (inner, item) in enumerate(zip(kind, value, strict=True)):
            _append(session, f"{path}.{position}", inner, item, pending, result)
    elif kind == "constexpr":
        return
    elif kind.startswith("tensordesc"):
        result.extend(_descriptor(session, path, value, pending.pop(0) if pending else None))
    elif kind.startswith("*"):
        result.append(pointer(session, path, value))
    else:
        result.append(scalar(session, path, kind, value))


def pointer(session: Session, path: str, value: Any) -> dict[str, Any]:
    """A pointer as (buffer, byte offset); it is found through the stand-in, never through its address."""
    if value is None:
        return {"null": True}
    base = value if isinstance(value, StandIn) else getattr(value, "base", None)
    if not isinstance(base, StandIn):
        session.refuse(
            "foreign_pointer",
            f"Kernel argument '{path}' is not a tensor of this call. Pass an argument of "
            "run(), a view of one, or scratch allocated in this call.",
        )
    if base.session_number != session.number:
        session.refuse(
            "kept_scratch",
            f"Kernel argument '{path}' is a tensor kept from an earlier call. run() keeps no "
            "state: allocate scratch inside each call.",
        )
    return {"buffer": base.buffer.id, "offset": int(value.data_ptr()) - base.buffer.base}


def scalar(session: Session, path: str, kind: str, value: Any) -> dict[str, Any]:
    """A number packed by Triton's own rules: floats from double, bfloat16 truncated."""
    if kind in _INTEGERS:
        number = int(value)
        if session.holds_address(number):
            session.refuse(
                "raw_address", f"Kernel argument '{path}' is an address passed as an integer. Pass the tensor."
            )
        width = _INTEGERS[kind]
        data = (number & ((1 << (8 * width)) - 1)).to_bytes(width, "little")
    elif kind in _FLOATS:
        data = struct.pack(_FLOATS[kind], float(value))
    elif kind == "bf16":
        data = struct.pack("<f", float(value))[2:]
    elif kind == "fp16":
        data = pattern_of(torch.float16, float(value))
    else:
        session.refuse("argument_type", f"Kernel argument '{path}' has type {kind}, which a plan cannot hold.")
    return {"scalar": kind, "hex": data.hex()}


def _descriptor(session: Session, path: str, value: Any, facts: Any) -> list[dict[str, Any]]:
    if facts is None:
        session.refuse(
            "argument_type",
            f"The descriptor '{path}' is not lowered to a tensor map on this target. "
            "Use tl.make_tensor_descriptor in the kernel function.",
        )
    facts = facts if isinstance(facts, dict) else dict(facts)
    where = pointer(session, path, value.base)
    shape, strides = [int(n) for n in value.shape], [int(n) for n in value.strides]
    body = {
        **where,
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
    tail = [scalar(session, path, "i32", n) for n in shape] + [scalar(session, path, "i64", n) for n in strides]
    return [{"tensormap": body}, *tail]


def paths(keyed: dict[tuple[int, ...], Any], names: list[str]) -> dict[str, Any]:
    """``{(2, 0): v}`` as ``{"name.0": v}``: constants and attributes by dotted argument path."""
    return {".".join([names[key[0]], *map(str, key[1:])]): value for key, value in keyed.items()}


def divisibility(attributes: list[Any]) -> int | None:
    """What ``[["tt.divisibility", 16]]`` promises, ``None`` without such an entry."""
    return next((int(value) for name, value in attributes if name == "tt.divisibility"), None)
