"""The walls a candidate process puts around itself, in order; each that stands is named in the list returned."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.evaluation.sandbox import landlock, linux, seccomp

SYSTEM = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime",
          "/sys/devices/system/cpu")
FILE_BYTES = 64 << 20
OPEN_FILES = 512
PROCESSES = 256


@dataclass(frozen=True, slots=True)
class Plan:
    """What to build for one candidate. ``uid`` is its own user, ``None`` to keep the server's; ``jail``: it runs in
    its own namespaces; ``tmp``: its private directory; ``readable``: what Landlock lets it read."""

    uid: int | None
    jail: bool
    tmp: str
    readable: tuple[str, ...]
    data_bytes: int


def readable_paths(package_root: str) -> tuple[str, ...]:
    """Python, its packages, system libraries and the sandbox's own code; no operator, no judge, no home."""
    own = (f"{package_root}/harness/backends", f"{package_root}/harness/evaluation/sandbox")
    return tuple(dict.fromkeys((sys.base_prefix, sys.prefix, *SYSTEM, *own)))


def build(plan: Plan) -> list[str]:
    """Confine the calling process for good and name the walls that stand."""
    standing: list[str] = ["pidns", "mountns", "netns"] if plan.jail else []

    def attempt(name: str, wall: Callable[[], None]) -> None:
        with contextlib.suppress(OSError, ValueError):
            wall()
            standing.append(name)

    attempt("limits", lambda: _limits(plan))
    if plan.uid is not None:
        uid = plan.uid
        attempt("uid", lambda: _own_uid(uid))
    with contextlib.suppress(OSError):
        linux.drop_capabilities()
    attempt("no_new_privs", lambda: _ignore(linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)))
    proc = ("/proc",) if plan.jail else ()
    readable: Sequence[str] = (*plan.readable, *proc, "/dev/zero", "/dev/urandom")
    attempt("landlock", lambda: landlock.restrict(readable, (plan.tmp, "/dev/null")))
    attempt("seccomp", seccomp.install)
    return standing


def _ignore(_: object) -> None:
    """Drop a result where a callable must return nothing."""


def _limits(plan: Plan) -> None:
    for name, value in (
        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, FILE_BYTES), (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_DATA, plan.data_bytes), (resource.RLIMIT_NPROC, PROCESSES),
        (resource.RLIMIT_MEMLOCK, 0), (resource.RLIMIT_MSGQUEUE, 0),
    ):
        _, hard = resource.getrlimit(name)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (bound, bound))


def _own_uid(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
