"""What happens on the clock's cores while a shape is timed: one reading before, one after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.evaluation.timing.pulse import pulse
from harness.evaluation.timing.sides import CANDIDATE, Side
from harness.hardware import telemetry
from harness.hardware.cores import Cores
from harness.hardware.telemetry import Disturbance

SHARED_SWITCHES = 2
"""Switches per request that the judge and the keeper cause themselves where everything shares one core."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One shape of one round. ``outside`` leaves out the candidate's own switches: what it does to itself, with threads
    for instance, is no excuse for its unsteadiness."""

    all: Disturbance
    outside: Disturbance


class Watch:
    """The counters of one session; speeds are shares of the fastest clock that it saw so far."""

    def __init__(self, cores: Cores) -> None:
        self._cores = cores
        self._shared = bool(set(cores.timing) & set(cores.rest))
        self._fastest_s = min(pulse(cores.timing) for _ in range(3))

    def begin(self, sides: Sequence[Side]) -> None:
        """Read before the first timed request of a shape; all ``sides`` are frozen."""
        self._before_s = pulse(self._cores.timing)
        self._switches, self._own_s = _switches(sides), _seconds(sides)
        self._counters = telemetry.read(self._cores.timing)

    def end(self, sides: Sequence[Side], sweeps: int) -> Seen:
        """What happened since ``begin``, while each of ``sides`` was timed ``sweeps`` times; all are frozen again."""
        after, own_s = telemetry.read(self._cores.timing), _seconds(sides) - self._own_s
        slowest_s = max(self._before_s, pulse(self._cores.timing))
        self._fastest_s = min(self._fastest_s, self._before_s, slowest_s)
        now = _switches(sides)
        switches = {name: now[name] - self._switches[name] for name in now}

        def seen(names: list[str]) -> Disturbance:
            requests = sweeps * len(names)
            own = SHARED_SWITCHES * requests if self._shared else 0
            count = max(0, sum(switches[name] for name in names) - own)
            return telemetry.between(
                self._counters, after, self._cores.threads, count, requests, own_s=None if self._shared else own_s,
                speed=self._fastest_s / slowest_s,
            )

        return Seen(seen(list(now)), seen([name for name in now if name != CANDIDATE]))


def _switches(sides: Sequence[Side]) -> dict[str, int]:
    """Involuntary context switches so far, by side."""
    return {side.name: side.worker.switches for side in sides}


def _seconds(sides: Sequence[Side]) -> float:
    """What all sides spent on their cores, up to their last freeze."""
    return sum(side.worker.cpu_s for side in sides)
