"""What may have disturbed a measurement: time stolen by the host, involuntary switches, others' work on the clock's
cores, a clock that ran slower. Read before and after."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS = 100  # USER_HZ, fixed in the kernel's interface
QUIET_STEAL = 0.02
QUIET_SWITCHES = 0.5
QUIET_OTHERS = 0.25
LEAST_OTHERS_S = 0.04
"""Ticks are coarse: fewer than four of somebody else's are no evidence."""
FULL_SPEED = 0.90
"""A clock below this share of the fastest one seen was throttled, or its core was shared."""


@dataclass(frozen=True, slots=True)
class Counters:
    """One reading: the monotonic clock, CPU seconds that the host took from the cores watched, and CPU seconds that
    anything spent on them."""

    at: float
    stolen_s: float
    busy_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Between two readings: share of the time stolen, involuntary context switches per timed request, share of the time
    that others spent on the clock's cores, and the clock's speed as a share of its fastest."""

    steal_share: float
    switches: float
    others: float = 0.0
    speed: float = 1.0

    @property
    def disturbed(self) -> bool:
        """Whether this is more than a measurement should bear."""
        return (self.steal_share > QUIET_STEAL or self.switches > QUIET_SWITCHES or self.others > QUIET_OTHERS
                or self.speed < FULL_SPEED)

    @property
    def text(self) -> str:
        """In words."""
        return (f"{self.steal_share:.1%} stolen by the host, {self.switches:.1f} involuntary switches per request, "
                f"{self.others:.0%} used by others, clock at {self.speed:.0%} of its fastest")


def read(cores: Iterable[int], stat: str | None = None) -> Counters:
    """Read the counters of ``cores`` from ``/proc/stat`` (or from its text ``stat``)."""
    text = Path("/proc/stat").read_text() if stat is None else stat
    wanted = {f"cpu{core}" for core in cores}
    stolen = busy = 0
    for line in text.splitlines():
        name, *fields = line.split()
        if name in wanted:
            user, nice, system, _idle, _iowait, irq, softirq, steal = (int(field) for field in fields[:8])
            stolen += steal
            busy += user + nice + system + irq + softirq
    return Counters(time.monotonic(), stolen / TICKS, busy / TICKS)


def between(before: Counters, after: Counters, cores: int, switches: int, requests: int, *,
            own_s: float | None = None, speed: float = 1.0) -> Disturbance:
    """What happened between two readings on ``cores`` cores in which ``requests`` were timed.

    ``own_s`` is what the timed processes spent there; ``None`` where the cores are shared with the judge, so that
    nobody can tell what others did.
    """
    span = max(after.at - before.at, 1e-9) * max(cores, 1)
    others = 0.0 if own_s is None else after.busy_s - before.busy_s - own_s
    return Disturbance(max(after.stolen_s - before.stolen_s, 0.0) / span, switches / max(requests, 1),
                       others / span if others >= LEAST_OTHERS_S else 0.0, speed)


def load_average() -> float:
    """Runnable processes, averaged over one minute."""
    return float(Path("/proc/loadavg").read_text().split()[0])
