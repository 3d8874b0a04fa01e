"""What a GPU did during a round: clocks, power, heat and company. Decides which rounds are measured again."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.backends.triton.launcher.requests import Sweep
from harness.hardware.nvml import Reading, strangers

CLOCK_SPREAD = 0.02
"""Mean multiprocessor clocks of two sides may differ by this share."""
CLOCK_CERTAINTY = 4.0
"""And by this many standard errors: a clock read around a short call is read coarsely."""
LEAST_LOOKS = 3
"""Samples of a side's clock that its mean takes."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Mean multiprocessor clock while a side ran, and the standard error of that mean, both in MHz."""

    mean: float
    error: float


def disturbance(before: Reading | None, after: Reading | None, sweeps: Sequence[Sweep],
                mhz: Sequence[float | None]) -> str:
    """A sentence where a round has to be repeated, else empty. ``mhz`` is the clock of each sweep's first side."""
    slowed = sorted({name for reading in (before, after) if reading is not None for name in reading.slowed})
    if slowed:
        return f"the device reported {', '.join(slowed)}"
    clocks = sorted(side_clocks(sweeps, mhz).items(), key=lambda item: item[1].mean)
    if len(clocks) > 1:
        (slow, least), (fast, most) = clocks[0], clocks[-1]
        apart = most.mean - least.mean
        if apart > CLOCK_SPREAD * least.mean and apart > CLOCK_CERTAINTY * math.hypot(most.error, least.error):
            return (f"the clock stood at {most.mean:.0f} MHz while the {fast} kernel ran and at {least.mean:.0f} MHz "
                    f"while the {slow} kernel ran")
    return ""


def side_clocks(sweeps: Sequence[Sweep], mhz: Sequence[float | None]) -> dict[str, Clock]:
    """The clock of every side that was looked at often enough. ``mhz`` is the clock of each sweep's first side."""
    seen: dict[str, list[float]] = {}
    for sweep, clock in zip(sweeps, mhz, strict=True):
        if clock is not None:
            seen.setdefault(sweep.order[0], []).append(clock)
    return {side: Clock(statistics.fmean(looks), statistics.stdev(looks) / math.sqrt(len(looks)))
            for side, looks in seen.items() if len(looks) >= LEAST_LOOKS}


@dataclass
class Log:
    """All readings of a session, for the verdict's clocks."""

    own: int  # the judge's process number
    readings: list[Reading] = field(default_factory=list)
    rounds: int = 0
    repeated: int = 0
    capped: int = 0
    company: int = 0

    def add(self, before: Reading | None, after: Reading | None) -> None:
        """Note one round's readings."""
        seen = [reading for reading in (before, after) if reading is not None]
        self.readings += seen
        self.rounds += 1
        self.capped += any(reading.capped for reading in seen)
        self.company = max([self.company, *(strangers(reading.processes, self.own) for reading in seen)])

    def document(self) -> dict[str, Any]:
        """Lowest and highest of everything that was read; ``None`` where this host tells nothing."""
        reasons = 0
        for reading in self.readings:
            reasons |= reading.reasons
        return {
            "sm_mhz": _range([reading.sm_mhz for reading in self.readings]),
            "memory_mhz": _range([reading.memory_mhz for reading in self.readings]),
            "power_w": _range([reading.power_w for reading in self.readings]),
            "celsius": _range([reading.celsius for reading in self.readings]),
            "event_reasons": f"0x{reasons:x}" if self.readings else None,
            "rounds": self.rounds, "rounds_repeated": self.repeated, "rounds_capped": self.capped,
            "other_processes": self.company if self.readings else None,
        }


def _range(values: Sequence[float | None]) -> list[float] | None:
    known = [value for value in values if value is not None]
    return [min(known), max(known)] if known else None
