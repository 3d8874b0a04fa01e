"""What happens on the clock's cores while a shape is timed: one reading before, one after."""

from __future__ import annotations

from collections.abc import Iterable

from harness.evaluation.timing.pulse import pulse
from harness.evaluation.timing.sides import Side
from harness.hardware import telemetry
from harness.hardware.cores import Cores
from harness.hardware.telemetry import Disturbance

SHARED_SWITCHES = 2
"""Switches per request that the judge and the keeper cause themselves where everything shares one core."""


class Watch:
    """The counters of one session; speeds are shares of the fastest clock that it saw so far."""

    def __init__(self, cores: Cores) -> None:
        self._cores = cores
        self._shared = bool(set(cores.timing) & set(cores.rest))
        self._fastest_s = min(pulse(cores.timing) for _ in range(3))

    def begin(self, sides: Iterable[Side]) -> None:
        """Read before the first timed request of a shape; all ``sides`` are frozen."""
        self._sides = list(sides)
        self._before_s = pulse(self._cores.timing)
        self._switches, self._own_s = self._spent()
        self._counters = telemetry.read(self._cores.timing)

    def end(self, requests: int) -> Disturbance:
        """What happened since ``begin``, in which ``requests`` were timed; all sides are frozen again."""
        after = telemetry.read(self._cores.timing)
        switches, own_s = self._spent()
        slowest_s = max(self._before_s, pulse(self._cores.timing))
        self._fastest_s = min(self._fastest_s, self._before_s, slowest_s)
        count = switches - self._switches
        if self._shared:
            count = max(0, count - SHARED_SWITCHES * requests)
        return telemetry.between(
            self._counters, after, self._cores.threads, count, requests,
            own_s=None if self._shared else own_s - self._own_s, speed=self._fastest_s / slowest_s,
        )

    def _spent(self) -> tuple[int, float]:
        """Involuntary switches of all sides and the seconds that they spent on their cores, up to their last freeze."""
        return sum(side.worker.switches for side in self._sides), sum(side.worker.cpu_s for side in self._sides)
