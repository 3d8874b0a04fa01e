"""How well a device time is supported: the launcher's events against the judge's own clock, and against the roof. Pure.

Events cannot be written by a kernel, but the process that reads them hosts kernels. So the judge times back-to-back
calls of every side itself: the slope between two counts is free of what a request costs. A sample is one cold call or
batch; it may cost more than the slope, because nothing overlaps with it, and not much less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.domain.vocabulary import Evidence
from harness.evaluation.timing.figures import SUSPICIOUS_SHARE

LEAST_SHARE = 0.8
"""Of the judge's slope that a time by events has to reach."""


@dataclass(frozen=True, slots=True)
class Slope:
    """One side's calls back to back: microseconds per call by the judge's clock and by the launcher's."""

    judged_us: float
    launcher_us: float


def slope_us(points: Sequence[tuple[int, float]]) -> float:
    """Microseconds per call between two points (calls, seconds).

    Raises:
        ValueError: these are no two points with rising counts.
    """
    (few, short), (many, long) = points
    if many <= few:
        raise ValueError(f"a slope needs more calls at its second point than {few}, got {many}")
    return (long - short) / (many - few) * 1e6


def lower(old: Slope | None, new: Slope) -> Slope:
    """The one less disturbed: whatever else the host does only adds."""
    return new if old is None or new.judged_us < old.judged_us else old


def too_fast(event_us: float, slope: Slope) -> bool:
    """Whether the events show less than the judge's clock can account for."""
    return event_us < LEAST_SHARE * slope.judged_us


def assess(events: Mapping[str, Mapping[str, float]], slopes: Mapping[str, Mapping[str, Slope]],
           least_s: Mapping[str, float]) -> tuple[Evidence, list[str]]:
    """The evidence of a session and, where it is only claimed, why.

    ``events`` and ``slopes`` are by shape, then by side, in microseconds per call; ``least_s`` the roof's floor of each
    shape in seconds.
    """
    reasons = []
    for label, sides in events.items():
        for side, event_us in sides.items():
            slope = slopes.get(label, {}).get(side)
            if slope is None:
                reasons.append(f"on {label} the judge took no slope of the {side} kernel")
            elif too_fast(event_us, slope):
                reasons.append(f"on {label} events show {event_us:.1f} us for the {side} kernel where calls back to "
                               f"back take {slope.judged_us:.1f} us by the judge's clock")
        mine = sides.get("candidate")
        if mine is not None and mine < SUSPICIOUS_SHARE * least_s[label] * 1e6:
            reasons.append(f"on {label} {mine:.1f} us lie below the roof's floor of {least_s[label] * 1e6:.1f} us")
    return (Evidence.CLAIMED if reasons else Evidence.BOUNDED), reasons
