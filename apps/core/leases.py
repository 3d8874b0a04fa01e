"""Who holds a row: host, boot, process id and process start, so that a dead owner is recognised at once."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.db import models


@dataclass(frozen=True, slots=True)
class Owner:
    """One process for good: a process id may come back, the four values together do not."""

    host: str
    boot: str
    pid: int
    start: str

    def alive(self) -> bool | None:
        """Whether the process still runs; ``None`` when it lives on another host and cannot be asked."""
        if self.host != socket.gethostname():
            return None
        if self.boot != _boot():
            return False
        return process_start(self.pid) == self.start


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def process_start(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty when it does not run (a zombie does not)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def this_process() -> Owner:
    """The identity of the calling process."""
    return Owner(host=socket.gethostname(), boot=_boot(), pid=os.getpid(), start=process_start(os.getpid()))


class Leased(models.Model):
    """A lease on a row. ``fence`` grows with every taking; writes carry it and count only while it is the present."""

    owner_host = models.CharField(max_length=255, blank=True, default="")
    owner_boot = models.CharField(max_length=64, blank=True, default="")
    owner_pid = models.PositiveIntegerField(null=True, blank=True)
    owner_start = models.CharField(max_length=32, blank=True, default="")
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveBigIntegerField(default=0)

    class Meta:
        abstract = True

    def owner(self) -> Owner | None:
        """Who holds the row, or ``None``."""
        if self.owner_pid is None:
            return None
        return Owner(self.owner_host, self.owner_boot, self.owner_pid, self.owner_start)


NO_OWNER: dict[str, Any] = {
    "owner_host": "", "owner_boot": "", "owner_pid": None, "owner_start": "", "lease_expires_at": None,
}
"""Field values of a row that nobody holds."""
