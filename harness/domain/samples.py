"""Raw timing samples: everything a comparison is recomputed from.

Microseconds per call. One entry per shape and round; ``a`` and ``b`` of a pair were timed next to
each other, in random order. ``aa`` pairs the opponent with a second copy of itself.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PairedRound:
    """One process round of one side: ``other`` and ``candidate`` hold n paired samples each, in microseconds."""

    other: tuple[float, ...]
    candidate: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ShapeSamples:
    """All rounds of one shape: ``versus`` by role, and the A/A control of the same session."""

    shape: str
    weight: float
    versus: dict[str, tuple[PairedRound, ...]]
    aa: tuple[PairedRound, ...]
    cold: tuple[float, ...] = ()
    first_call: float | None = None


@dataclass(frozen=True, slots=True)
class Samples:
    """The blob that a verdict's ``samples`` digest addresses."""

    shapes: tuple[ShapeSamples, ...]
    version: int = 1
