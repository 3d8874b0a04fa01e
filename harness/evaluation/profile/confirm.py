"""Whether a profiler's run confirms what the clock says: the same launches, and times that agree. Pure.

The profiler times every launch of a call by the device's own counters, in a process of its own. A time that the clock
was talked into would lie below the sum of them. Differences are allowed for what both see differently: the profiler
drains the device between launches, which calls in one graph overlap, and leaves no other work in its caches.

On an H200 (evaluator 2.4, Nsight Compute 2025.3.1, 47 shapes of 14 verdicts) the clock lay from 5.6 % below to 18.5 %
above the profiler where a call took 15 us or more, and up to 1.8 us below it, of one or two launches, where it took
less.
"""

from __future__ import annotations

from harness.domain.profile import CounterProfile, ProfileSource, ShapeCounters
from harness.domain.verdict import Reason, ShapeTiming, Timing
from harness.domain.vocabulary import Evidence, Stage

BELOW, ABOVE = 0.1, 0.3
"""Shares of the profiler's time that the clock's may lie below and above it, beside ``LAUNCH_US`` for every launch."""
LAUNCH_US = 2.0
LEAST = 0.5
"""Share of the profiler's time below which no clock agrees: many launches, or one short one, would excuse any time."""


def confirmed(timing: Timing, profile: CounterProfile) -> tuple[Evidence, tuple[Reason, ...]]:
    """The evidence of ``timing`` now that ``profile`` is known, and a note for every shape where both differ. Only what
    is ``bounded`` already can be ``profiled``, and only with counters of every timed shape."""
    if profile.source is not ProfileSource.COUNTERS:
        return timing.evidence, ()
    seen = {shape.shape: shape for shape in profile.shapes}
    notes = tuple(_note(shape, seen[shape.shape]) for shape in timing.shapes
                  if shape.shape in seen and not _agree(shape, seen[shape.shape]))
    whole = bool(timing.shapes) and all(shape.shape in seen for shape in timing.shapes)
    if timing.evidence is Evidence.BOUNDED and whole and not notes:
        return Evidence.PROFILED, ()
    return timing.evidence, notes


def _agree(timing: ShapeTiming, counters: ShapeCounters) -> bool:
    if not counters.us or not counters.launches:  # a counter that stood still is no time
        return False
    spare = LAUNCH_US * len(counters.launches)
    least = max((1 - BELOW) * counters.us - spare, LEAST * counters.us)
    return least <= _cold(timing) <= (1 + ABOVE) * counters.us + spare


def _cold(timing: ShapeTiming) -> float:
    """The profiler empties the caches, too."""
    return timing.cold_us if timing.cold_us is not None else timing.median_us


def _note(timing: ShapeTiming, counters: ShapeCounters) -> Reason:
    found = "no time" if counters.us is None else f"{counters.us:,.2f} us"
    text = (f"On {timing.shape} the profiler found {found} for a call of {len(counters.launches)} launch(es), "
            f"the clock {_cold(timing):,.2f} us: its run confirms nothing.")
    return Reason("profile_differs", Stage.PROFILE, text)
