"""Process trees: children that die with their parent, orphans that come home, ends that leave nothing running."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable

import psutil

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GONE_WITHIN_S = 3.0


def dies_with_parent(signal_number: int = signal.SIGKILL) -> Callable[[], None]:
    """A ``preexec_fn``: the child gets ``signal_number`` when the thread that started it ends, even by SIGKILL."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # loaded before the fork: no import may happen after it
    parent = os.getpid()

    def apply() -> None:
        prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
        if os.getppid() != parent:  # the parent died between fork and here
            os._exit(1)

    return apply


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent dies, so that none can slip away from ``end_orphans``."""
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


def end_orphans(keep: frozenset[int] = frozenset()) -> None:
    """End every child of this process but those in ``keep``, with its tree.

    Meant for a process that called ``adopt_orphans``: what it did not start itself came to it by a parent's death.
    """
    for child in psutil.Process().children():
        if child.pid not in keep:
            end_tree(child.pid)
