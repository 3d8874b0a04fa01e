"""Whether one recorded launch agrees with itself: arguments and signature, promises and numbers, options and flags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u1": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8, "fp16": 2,
          "bf16": 2, "fp32": 4, "f32": 4, "fp64": 8}
_FLAGS = (("num_ctas", "num_ctas"), ("cooperative", "launch_cooperative_grid"), ("pdl", "launch_pdl"))
"""Fields of a launch and the options that set them."""


class Contradiction(ValueError):
    """What an honest recorder never writes."""


def check_launch(launch: dict[str, Any]) -> None:
    """Walk ``launch`` against its own signature.

    Raises:
        Contradiction: with what is wrong, as the end of a sentence.
    """
    name, args = launch["function"], launch["args"]
    for field, option in _FLAGS:
        if option in launch["options"] and launch["options"][option] != launch[field]:
            raise Contradiction(f"'{name}' was compiled with {option}={launch['options'][option]} but is launched with "
                                f"{launch[field]}")
    kinds = list(_kinds(launch["signature"], args))
    if len(args) != len(kinds) + 2:
        raise Contradiction(f"'{name}' has {len(args)} arguments; its signature needs {len(kinds) + 2}")
    if "null" not in args[-1] or not args[-2].keys() & {"null", "buffer"}:
        raise Contradiction(f"the implicit arguments of '{name}' are not what they are for")
    promises = dict(launch["divisible"])
    for (path, kind), argument in zip(kinds, args, strict=False):
        if not _fits(kind, argument):
            raise Contradiction(f"argument '{path}' of '{name}' is no {kind}")
        promised = promises.pop(path, 1)
        number = _number(argument)
        if not isinstance(promised, int) or promised < 1 or (number is not None and number % promised):
            raise Contradiction(f"argument '{path}' of '{name}' was compiled as a multiple of {promised}, which it is "
                                "not")
    if promises:
        raise Contradiction(f"'{name}' promises something about {', '.join(sorted(promises))}, no argument of its own")


def _kinds(signature: dict[str, Any], args: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Path and kind of every argument that the signature calls for, in order."""
    position = 0
    for path, kind in _leaves(signature):
        if kind == "constexpr":
            continue
        if kind.startswith("tensordesc"):
            body = args[position].get("tensormap", {}) if position < len(args) else {}
            rank = len(body.get("shape", ()))
            parts = ["tensormap", *["i32"] * rank, *["i64"] * rank]
        else:
            parts = [kind]
        for part in parts:
            yield path, part
        position += len(parts)


def _leaves(signature: dict[str, Any]) -> Iterator[tuple[str, str]]:
    pending = [(name, kind) for name, kind in reversed(signature.items())]
    while pending:
        path, kind = pending.pop()
        if isinstance(kind, list | tuple):
            pending += [(f"{path}.{number}", inner) for number, inner in reversed(list(enumerate(kind)))]
        else:
            yield path, str(kind)


def _fits(kind: str, argument: dict[str, Any]) -> bool:
    if kind == "tensormap":
        return "tensormap" in argument
    if kind.startswith("*"):
        return "buffer" in argument or "null" in argument
    return argument.get("scalar") == kind and len(argument["hex"]) == 2 * _BYTES.get(kind, -1)


def _number(argument: dict[str, Any]) -> int | None:
    """What a promise of divisibility is about: a pointer's distance from an aligned address, or an integer."""
    if "buffer" in argument:
        return int(argument["offset"])
    if "scalar" in argument and argument["scalar"][0] in "iu":
        try:
            return int.from_bytes(bytes.fromhex(argument["hex"]), "little")
        except ValueError as error:
            raise Contradiction(f"'{argument['hex']}' is no number in hexadecimal digits") from error
    return None
