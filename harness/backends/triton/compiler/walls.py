"""The walls of the compile process: limits, no files but its own, no network, no program but the assembler.

What it parses was written by a process that a candidate shared, and a compiler is not made for hostile input.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any

from harness.evaluation.sandbox import landlock, limits, linux, seccomp

SYSTEM = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/urandom", "/dev/zero",
          "/sys/devices/system/cpu", "/proc/self", "/proc/cpuinfo", "/proc/meminfo")
LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
"""Programs are started by their loader, which therefore has to be executable too."""


def build(folder: str, programs: tuple[str, ...], *, seconds: int, memory_bytes: int) -> list[str]:
    """Confine the calling process for good and name the walls that stand.

    ``folder`` is all it may write to, ``programs`` are all it may run; ``seconds`` of processor time and
    ``memory_bytes`` of address space bound it.
    """
    standing: list[str] = []

    def attempt(name: str, wall: Callable[[], Any]) -> None:
        with contextlib.suppress(OSError, ValueError):
            wall()
            standing.append(name)

    attempt("limits", lambda: limits.bound({
        resource.RLIMIT_CPU: seconds, resource.RLIMIT_AS: memory_bytes, resource.RLIMIT_FSIZE: 256 << 20,
        resource.RLIMIT_NOFILE: 256}))
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    with contextlib.suppress(OSError):
        linux.drop_capabilities()
    attempt("no_new_privs", lambda: linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1))
    readable = (sys.base_prefix, sys.prefix, *SYSTEM)
    attempt("landlock", lambda: landlock.restrict(readable, (folder, "/dev/null"), (*programs, *LOADERS)))
    attempt("seccomp", lambda: seccomp.install(allowed=("execve",), one_group=True))
    return standing
