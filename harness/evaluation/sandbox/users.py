"""Which user a candidate runs as: one that nobody else on the machine has, not even another candidate."""

from __future__ import annotations

import os
from pathlib import Path

FIRST, PER_SERVER, SERVERS = 2_017_000_000, 64, 65_536
"""Above every range that systems hand out (services up to 65,519, containers up to 1,879,048,191)."""
LOW_FIRST, LOW_LAST = 50_000, 59_999
"""Where only 16-bit users are mapped, as in many containers: below the range of transient services."""


def of_candidate(count: int) -> int:
    """The user of the calling server's candidate number ``count``; servers that run at once do not share any where the
    machine has room for it."""
    if _mapped(FIRST + PER_SERVER * SERVERS):
        return FIRST + os.getpid() % SERVERS * PER_SERVER + count % PER_SERVER
    return LOW_FIRST + (os.getpid() * PER_SERVER + count) % (LOW_LAST - LOW_FIRST + 1)


def _mapped(uid: int) -> bool:
    """Whether ``uid`` exists in the caller's user namespace."""
    try:
        for line in Path("/proc/self/uid_map").read_text("ascii").splitlines():
            first, _, length = map(int, line.split())
            if first <= uid < first + length:
                return True
    except (OSError, ValueError):
        return False
    return False
