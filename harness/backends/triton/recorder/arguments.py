"""A recorded launch's arguments: pointers as (buffer, offset), never as addresses."""

from __future__ import annotations

from typing import Any

from harness.backends.triton.recorder import packing
from harness.backends.triton.recorder.session import Session
from harness.backends.triton.recorder.standin import StandIn


def flatten(
    session: Session, signature: dict[str, Any], values: tuple[Any, ...], descriptors: Any
) -> list[dict[str, Any]]:
    """Plan arguments for ``values``; see ``packing.flatten``. What a plan cannot hold is refused."""
    try:
        return packing.flatten(signature, values, descriptors, Recorded(session))
    except packing.Unpackable as error:
        session.refuse("argument_type", f"Kernel argument '{error.path}' {error.text}.")


class Recorded:
    """Names memory by the stand-ins that kernels get."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def pointer(self, path: str, value: Any) -> dict[str, Any]:
        """A pointer as (buffer, byte offset); it is found through the stand-in, never through its address."""
        session = self._session
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

    def integer(self, path: str, number: int) -> None:
        """Refuse a number that is an address."""
        if self._session.holds_address(number):
            self._session.refuse(
                "raw_address", f"Kernel argument '{path}' is an address passed as an integer. Pass the tensor."
            )


def paths(keyed: dict[tuple[int, ...], Any], names: list[str]) -> dict[str, Any]:
    """``{(2, 0): v}`` as ``{"name.0": v}``: constants and attributes by dotted argument path."""
    return {".".join([names[key[0]], *map(str, key[1:])]): value for key, value in keyed.items()}


def divisibility(attributes: list[Any]) -> int | None:
    """What ``[["tt.divisibility", 16]]`` promises, ``None`` without such an entry."""
    return next((int(value) for name, value in attributes if name == "tt.divisibility"), None)
