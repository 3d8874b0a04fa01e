"""What may have disturbed a measurement: time stolen by the host, involuntary switches, load. Read before and after."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS = 100  # USER_HZ, fixed in the kernel's interface
QUIET_STEAL = 0.02
QUIET_SWITCHES = 0.5


@dataclass(frozen=True, slots=True)
class Counters:
    """One reading: the monotonic clock, and CPU seconds that the host took from the cores watched."""

    at: float
    stolen_s: float


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Between two readings: share of the time stolen, and involuntary context switches per timed request."""

    steal_share: float
    switches: float

    @property
    def disturbed(self) -> bool:
        """Whether this is more than a measurement should bear."""
        return self.steal_share > QUIET_STEAL or self.switches > QUIET_SWITCHES

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.steal_share:.1%} stolen by the host, {self.switches:.1f} involuntary switches per request"


def read(cores: Iterable[int], stat: str | None = None) -> Counters:
    """Read the counters of ``cores`` from ``/proc/stat`` (or from its text ``stat``)."""
    text = Path("/proc/stat").read_text() if stat is None else stat
    wanted = {f"cpu{core}" for core in cores}
    stolen = 0
    for line in text.splitlines():
        name, *fields = line.split()
        if name in wanted:
            stolen += int(fields[7])
    return Counters(time.monotonic(), stolen / TICKS)


def between(before: Counters, after: Counters, cores: int, switches: int, requests: int) -> Disturbance:
    """What happened between two readings on ``cores`` cores in which ``requests`` were timed."""
    span = max(after.at - before.at, 1e-9) * max(cores, 1)
    return Disturbance(max(after.stolen_s - before.stolen_s, 0.0) / span, switches / max(requests, 1))


def load_average() -> float:
    """Runnable processes, averaged over one minute."""
    return float(Path("/proc/loadavg").read_text().split()[0])
