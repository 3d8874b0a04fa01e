"""The walls of the native process: the GPU's device files and the assembler stay reachable, nothing else does.

They stand before CUDA starts, because later threads inherit walls and earlier ones do not get them. CUDA reserves more
address space than any machine has, so memory is not limited here; the deadline and the process group are. CUDA does not
start (error 304, driver 580) without a local socket, which the filter makes useless, and without writing below its own
folder in ``/proc``, where it names its threads.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.evaluation.sandbox import landlock, limits, linux, seccomp

SYSTEM = (
    "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/cuda", "/usr/local/nvidia", "/usr/share/nvidia", "/lib",
    "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/etc/nvidia", "/sys", "/proc/self", "/proc/driver",
    "/proc/devices", "/proc/modules", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version",
    "/proc/sys/vm", "/dev/urandom", "/dev/zero",
)
LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
"""Programs are started by their loader, which therefore has to be executable too."""
NEEDED = ("landlock", "seccomp")
"""Walls without which no candidate is imported next to a GPU."""


def build(folder: str, programs: Sequence[str], *, seconds: int, more: Sequence[str] = ()) -> list[str]:
    """Confine the calling process, which has one thread, for good and name the walls that stand.

    ``folder`` is all it may write to beside the GPU's device files, ``programs`` are all it may run, ``more`` are
    further folders to read from. ``seconds`` of processor time bound it.
    """
    standing: list[str] = []

    def attempt(name: str, wall: Callable[[], Any]) -> None:
        with contextlib.suppress(OSError, ValueError):
            wall()
            standing.append(name)

    attempt("limits", lambda: limits.bound({
        resource.RLIMIT_CPU: seconds, resource.RLIMIT_FSIZE: 256 << 20, resource.RLIMIT_NOFILE: 4096}))
    with contextlib.suppress(OSError):  # where memory runs out, this process goes first
        Path("/proc/self/oom_score_adj").write_text("1000")
    attempt("netns", lambda: linux.unshare(linux.CLONE_NEWNET))
    with contextlib.suppress(OSError):
        linux.drop_capabilities()
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    attempt("no_new_privs", lambda: linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1))
    readable = (sys.base_prefix, sys.prefix, *filter(None, sys.path), *SYSTEM, *more)
    attempt("landlock", lambda: landlock.restrict(
        readable, (folder, "/dev/null", "/proc/self"), (*programs, *LOADERS), devices()))
    attempt("seccomp", lambda: seccomp.install(
        allowed=("execve", "sched_setaffinity"), one_group=True, mute_sockets=True))
    return standing


def devices() -> tuple[str, ...]:
    """The device files that CUDA opens on this host."""
    return tuple(str(path) for pattern in ("nvidia*", "nvidia-caps/*", "nvidia-caps-imex-channels/*")
                 for path in sorted(Path("/dev").glob(pattern)) if not path.is_dir())
