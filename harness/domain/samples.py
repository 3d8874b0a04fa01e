"""Raw timing samples: everything a comparison is recomputed from.

Microseconds per call. One entry per shape and round; ``a`` and ``b`` of a pair were timed next to
each other, in random order. ``aa`` pairs the opponent with a second copy of itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PairedRound:
    """One process round of one side: ``other`` and ``candidate`` hold n paired samples each, in microseconds."""

    other: tuple[float, ...]
    candidate: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ShapeSamples:
    """All rounds of one shape: ``versus`` by role, and the A/A control of the same session.

    ``cold`` and ``first_call`` are the candidate's; ``hot`` (back to back on one slot) and ``first_calls`` (import,
    compilation and first call of a fresh process) hold samples by side: ``candidate`` and the roles.
    """

    shape: str
    weight: float
    versus: dict[str, tuple[PairedRound, ...]]
    aa: tuple[PairedRound, ...]
    cold: tuple[float, ...] = ()
    first_call: float | None = None
    hot: dict[str, tuple[float, ...]] = field(default_factory=dict)
    first_calls: dict[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Samples:
    """The blob that a verdict's ``samples`` digest addresses."""

    shapes: tuple[ShapeSamples, ...]
    version: int = 1
