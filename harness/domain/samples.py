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

    ``cold`` and ``first_call`` are the candidate's; ``hot`` (contents that nobody saw before, in warm caches),
    ``repeated`` (calls on contents that the kernel had met: no figure, only a lead) and ``first_calls`` (import,
    compilation and first call of a fresh process) hold samples by side: ``candidate`` and the roles.

    Per round, for the plots: ``speed`` of a CPU's clock as a share of the fastest one that the session saw, ``mhz`` of
    a GPU's, and ``disturbed``, a sentence where something disturbed the round that stood after repeats (else empty).
    """

    shape: str
    weight: float
    versus: dict[str, tuple[PairedRound, ...]]
    aa: tuple[PairedRound, ...]
    cold: tuple[float, ...] = ()
    first_call: float | None = None
    hot: dict[str, tuple[float, ...]] = field(default_factory=dict)
    first_calls: dict[str, tuple[float, ...]] = field(default_factory=dict)
    repeated: dict[str, tuple[float, ...]] = field(default_factory=dict)
    speed: tuple[float, ...] = ()
    mhz: tuple[float | None, ...] = ()
    disturbed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Samples:
    """The blob that a verdict's ``samples`` digest addresses."""

    shapes: tuple[ShapeSamples, ...]
    version: int = 1
