"""Process identity and process trees: who holds a lease, is it still there, and how to end it with all it started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GONE_WITHIN_S = 3.0


@dataclass(frozen=True, slots=True)
class Identity:
    """One process, told apart from every later process with the same number: host, boot, pid, start (clock ticks)."""

    host: str
    boot: str
    pid: int
    start: int

    @property
    def on_this_machine(self) -> bool:
        """Whether the process was started on this host (any boot), so that its end can be seen from here."""
        return self.host == socket.gethostname()

    @property
    def is_gone(self) -> bool:
        """Whether it is certain that the process no longer runs. ``False`` for other hosts: only time tells there."""
        if not self.on_this_machine:
            return False
        return self.boot != boot_id() or start_ticks(self.pid) != self.start


def boot_id() -> str:
    """The kernel's identifier of this boot; empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def start_ticks(pid: int) -> int | None:
    """Start time of ``pid`` in clock ticks since boot, ``None`` where there is no such process or only its corpse."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # the command name may itself hold brackets and spaces
    return None if fields[0] in ("Z", "X") else int(fields[19])


def own_identity() -> Identity:
    """The identity of the calling process."""
    pid = os.getpid()
    return Identity(socket.gethostname(), boot_id(), pid, start_ticks(pid) or 0)


def dies_with_parent(signal_number: int = signal.SIGKILL) -> Callable[[], None]:
    """A ``preexec_fn``: the kernel sends ``signal_number`` to the child when the starting thread ends, even by SIGKILL."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # loaded before the fork: no import may happen after it
    parent = os.getpid()

    def apply() -> None:
        prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
        if os.getppid() != parent:  # the parent died between fork and here
            os._exit(1)

    return apply


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent dies, so that none can slip away from ``end_tree``."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_tree(pid: int) -> None:
    """Kill ``pid``, its process group and everything it started; returns when they are gone or after 3 seconds."""
    try:
        root = psutil.Process(pid)
        victims = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        victims = []
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for victim in victims:
        with contextlib.suppress(psutil.Error):
            victim.kill()
    psutil.wait_procs(victims, timeout=GONE_WITHIN_S)


def end_orphans(keep: frozenset[int] = frozenset()) -> int:
    """Kill every descendant of this process except ``keep``, and reap it; answers how many there were.

    Meant for a process that called ``adopt_orphans`` and expects no child of its own at this moment.
    """
    victims = [child for child in psutil.Process().children(recursive=True) if child.pid not in keep]
    for victim in victims:
        with contextlib.suppress(psutil.Error):
            victim.kill()
    psutil.wait_procs(victims, timeout=GONE_WITHIN_S)
    return len(victims)
