"""JSON as its standard has it: no NaN or infinity by name, and no object that names a key twice, of which readers would
take different ones."""

from __future__ import annotations

import json
from typing import Any


def loads(text: str | bytes, **parsers: Any) -> Any:
    """The value of ``text``; ``parsers`` go to ``json.loads``.

    Raises:
        ValueError: it is no such JSON.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, parse_constant=_no_number, object_pairs_hook=_once, **parsers)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object names a key twice")
    return made


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")
