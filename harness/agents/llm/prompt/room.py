"""How much of everything goes into a question. A model whose context is too short is asked again with less."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens of the parts that grow. ``results``: how many of the newest tool results are sent whole, ``None`` for
    all; older ones are replaced by a note that the tool can be called again."""

    log: int
    people: int
    hardware: int
    results: int | None = None


ROOMS = (Room(4000, 2000, 2000), Room(2000, 1000, 1200, 6), Room(800, 500, 600, 3), Room(250, 200, 200, 2))
"""From ample to the least that still makes sense."""
