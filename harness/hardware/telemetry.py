"""What may have disturbed a measurement: load, steal, foreign work. Counters, read before and after."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS = 100  # USER_HZ, fixed in the kernel's interface


@dataclass(frozen=True, slots=True)
class Counters:
    """One reading: seconds on the monotonic clock; CPU seconds stolen from, and spent on, the cores watched."""

    at: float
    stolen_s: float
    busy_s: float


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Between two readings: share of the time stolen by the host, and CPU seconds on the cores that were not ours."""

    steal_share: float
    foreign_share: float

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.steal_share:.1%} stolen by the host, {self.foreign_share:.1%} used by other processes"


def read(cores: Iterable[int], stat: str | None = None) -> Counters:
    """Read the counters of ``cores`` from ``/proc/stat`` (or from its text ``stat``)."""
    text = Path("/proc/stat").read_text() if stat is None else stat
    wanted = {f"cpu{core}" for core in cores}
    stolen = busy = 0
    for line in text.splitlines():
        name, *fields = line.split()
        if name in wanted:
            user, nice, system, _, _, irq, softirq, steal = (int(field) for field in fields[:8])
            stolen += steal
            busy += user + nice + system + irq + softirq
    return Counters(time.monotonic(), stolen / TICKS, busy / TICKS)


def between(before: Counters, after: Counters, own_s: float, cores: int) -> Disturbance:
    """What happened between two readings on ``cores`` cores while the timed processes used ``own_s`` CPU seconds."""
    span = max(after.at - before.at, 1e-9) * max(cores, 1)
    foreign = after.busy_s - before.busy_s - own_s
    return Disturbance(max(after.stolen_s - before.stolen_s, 0.0) / span, max(foreign, 0.0) / span)


def load_average() -> float:
    """Runnable processes, averaged over one minute."""
    return float(Path("/proc/loadavg").read_text().split()[0])
