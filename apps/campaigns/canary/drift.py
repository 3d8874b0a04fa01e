"""Whether a device drifts, from readings of its frozen baseline. Pure: figures in, judgements out.

A reading is compared with the reference: the first readings of the same baseline in the same environment class. Its
shift is the weighted geometric mean over the shapes of (reading / reference), so 1.05 is 5 % slower. It lies beyond
where the shift leaves max(2 %, 3 x noise); noise is the half-width of the A/A control, the larger one of the reading
and of the reference. Two readings in a row beyond on the same side open a drift, two in a row within end it. While a
drift is open only the reference's noise counts: a loud session does not show that a device is steady again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median

REFERENCE_READINGS = 3
LEAST_MARGIN = 0.02
NOISE_FACTOR = 3.0
IN_A_ROW = 2


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians in microseconds and weights by shape, and the noise of the session as a fraction."""

    medians: Mapping[str, float]
    weights: Mapping[str, float]
    noise: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """A reading against the reference. ``side``: 1 slower beyond the margin, -1 faster beyond it, 0 within."""

    shift: float
    margin: float
    side: int


def reference_of(readings: Sequence[Figures]) -> Figures | None:
    """The reference of the first readings: medians per shape over them, of the shapes that all have.

    ``None`` until there are ``REFERENCE_READINGS`` of them.
    """
    window = readings[:REFERENCE_READINGS]
    if len(window) < REFERENCE_READINGS:
        return None
    shapes = [shape for shape in window[0].medians if all(shape in one.medians for one in window)]
    return Figures(
        medians={shape: median(one.medians[shape] for one in window) for shape in shapes},
        weights={shape: window[0].weights[shape] for shape in shapes},
        noise=median(one.noise for one in window),
    )


def judge(reading: Figures, reference: Figures, *, drifting: bool = False) -> Judgement:
    """Where a reading lies; ``drifting``: a drift is open, so its own noise does not widen the margin.

    Raises:
        ValueError: no shape in common: another workload, which no figure of the reference says anything about.
    """
    shapes = [shape for shape in reading.medians if shape in reference.medians]
    total = sum(reference.weights[shape] for shape in shapes)
    if not shapes or total <= 0:
        raise ValueError("the reading and its reference have no shape in common")
    mean = sum(reference.weights[s] * log(reading.medians[s] / reference.medians[s]) for s in shapes) / total
    noise = reference.noise if drifting else max(reading.noise, reference.noise)
    margin = max(LEAST_MARGIN, NOISE_FACTOR * noise)
    side = 0 if abs(mean) <= log(1 + margin) else (1 if mean > 0 else -1)
    return Judgement(exp(mean), margin, side)


def drifting(sides: Sequence[int], *, before: bool) -> bool:
    """Whether the device drifts after readings with these sides (oldest first), given whether it did ``before``."""
    last = sides[-IN_A_ROW:]
    if len(last) < IN_A_ROW:
        return before
    if before:
        return any(side != 0 for side in last)
    return last[0] != 0 and all(side == last[0] for side in last)
