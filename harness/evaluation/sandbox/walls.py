"""The walls a candidate process puts around itself, in order; each that stands is named, and why another does not."""

from __future__ import annotations

import contextlib
import glob
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.evaluation.sandbox import landlock, limits, linux, seccomp

SYSTEM = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime",
          "/sys/devices/system/cpu")
GPU_DEVICES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia[0-9]*",
               "/dev/nvidia-caps/*")
FILE_BYTES = 64 << 20
ADDRESS_BYTES = 512 << 30
"""Address space, generous for guard ranges: what it bounds are page tables, which no other limit counts."""
OPEN_FILES = 512
PROCESSES = 256
QUEUED_SIGNALS = 1024

LIMITS, UID, NO_NEW_PRIVS, LANDLOCK, SECCOMP = "limits", "uid", "no_new_privs", "landlock", "seccomp"
OPTIONAL = (LIMITS, UID, NO_NEW_PRIVS, LANDLOCK, SECCOMP)
"""The walls that ``Plan.without`` can leave out; namespaces are left out by the server."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to build for one candidate.

    ``uid`` is its own user, ``None`` to keep the server's; ``jail``: it runs in its own namespaces already; ``tmp``:
    its private directory, the only place it may write to; ``readable``: what Landlock lets it read; ``data_bytes``
    bounds its private memory. ``without``: walls not to build, to see what the others hold.
    """

    uid: int | None
    jail: bool
    tmp: str
    readable: tuple[str, ...]
    data_bytes: int
    without: frozenset[str] = frozenset()


@dataclass(slots=True)
class Built:
    """``standing``: the walls that stand; ``missing``: why the others do not."""

    standing: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


def readable_paths(package_root: str) -> tuple[str, ...]:
    """Python, its packages, system libraries and the sandbox's own code; no operator, no judge, no home."""
    own = (f"{package_root}/harness/backends", f"{package_root}/harness/evaluation/sandbox")
    return tuple(dict.fromkeys((sys.base_prefix, sys.prefix, *SYSTEM, *own)))


def gpu_devices() -> tuple[str, ...]:
    """The NVIDIA device files of this machine."""
    return tuple(path for pattern in GPU_DEVICES for path in sorted(glob.glob(pattern)) if not os.path.isdir(path))  # noqa: PTH112, PTH207


def build(plan: Plan) -> Built:
    """Confine the calling process, which has one thread, for good."""
    built = Built(["pidns", "mountns", "netns"] if plan.jail else [])

    def attempt(name: str, wall: Callable[[], None]) -> None:
        if name in plan.without:
            built.missing[name] = "left out on request"
            return
        try:
            wall()
            built.standing.append(name)
        except (OSError, ValueError) as error:
            built.missing[name] = str(error)

    attempt(LIMITS, lambda: _limits(plan))
    if plan.uid is not None:
        uid = plan.uid
        attempt(UID, lambda: _own_uid(uid))
    with contextlib.suppress(OSError):
        linux.drop_capabilities()
    attempt(NO_NEW_PRIVS, lambda: _ignore(linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)))
    # a change of user clears the one and the filter refuses both: hence between them
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    with contextlib.suppress(OSError):
        linux.prctl(linux.PR_SET_DUMPABLE, 0)  # no dump of its memory, not even into a program that collects dumps
    proc = ("/proc",) if plan.jail else ()
    readable: Sequence[str] = (*plan.readable, *proc, "/dev/urandom")
    attempt(LANDLOCK, lambda: landlock.restrict(readable, (plan.tmp, "/dev/null")))
    attempt(SECCOMP, lambda: seccomp.install(alone_as=os.getpid()))
    return built


def _ignore(_: object) -> None:
    """Drop a result where a callable must return nothing."""


def _limits(plan: Plan) -> None:
    limits.bound({
        resource.RLIMIT_FSIZE: FILE_BYTES, resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_DATA: plan.data_bytes, resource.RLIMIT_AS: ADDRESS_BYTES,
        resource.RLIMIT_NPROC: PROCESSES + (_tasks_of_user() if plan.uid is None and not plan.jail else 0),
        resource.RLIMIT_MEMLOCK: 0, resource.RLIMIT_SIGPENDING: QUEUED_SIGNALS,
    })


def _tasks_of_user() -> int:
    """Threads this user runs already: the kernel's limit counts them together with the candidate's."""
    user, count = os.getuid(), 0
    if user == 0:  # root is never limited
        return 0
    for path in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError, ValueError, KeyError):  # the folder's owner is root where memory is private
            facts = dict(line.split(":", 1) for line in path.read_text().splitlines())
            if int(facts["Uid"].split()[0]) == user:
                count += int(facts["Threads"])
    return count


def _own_uid(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
