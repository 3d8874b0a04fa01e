"""A private file system for a warm server and its candidates: only what they read, read-only, at its usual place.

Directories on the way are fresh and searchable by all, so that an own uid works where Python lives in a private home.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from harness.evaluation.sandbox import linux

DEVICES = ("/dev/null", "/dev/urandom")  # not zero: shared maps of it are memory that no limit counts
TMP = "/private-tmp"
"""A candidate's own folder in the jail. Not ``/tmp``: Python itself may live below, and a mount would hide it."""
TMP_NAMES = 4096
READ_ONLY = linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID


def enter(readable: Sequence[str], stage: str) -> bool:
    """Move this process into new mount, network, IPC and host-name namespaces whose root holds only ``readable``.

    ``stage`` is an empty directory that the new root is built on. Without privilege a user namespace is tried.
    Must run while the process has one thread.

    Returns:
        Whether this process keeps real privilege (and so can give candidates an own uid).

    Raises:
        OSError: the kernel refuses; the process may be left in new namespaces, but with its old root.
    """
    flags = linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
    privileged = _unshare(flags)
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("none", stage, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=0755,size=1m")
    for path in (*readable, *DEVICES):
        _bind(path, stage)
    for name in ("proc", "tmp", TMP, ".old"):
        Path(stage, name.lstrip("/")).mkdir(mode=0o755, exist_ok=True)
    linux.mount("/proc", stage + "/proc", "", linux.MS_BIND | linux.MS_REC)
    linux.pivot_root(stage, stage + "/.old")
    os.chdir("/")
    linux.unmount("/.old")
    with contextlib.suppress(OSError):
        Path("/.old").rmdir()
        linux.mount("none", "/", "", linux.MS_REMOUNT | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV)
    return privileged


def _unshare(flags: int) -> bool:
    user, group = os.geteuid(), os.getegid()
    try:
        linux.unshare(flags)
    except PermissionError:
        linux.unshare(flags | linux.CLONE_NEWUSER)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            try:
                Path("/proc/self", name).write_text(text)
            except OSError as error:
                said = f"a user namespace is granted, but not its {name}: {error.strerror}"
                raise OSError(error.errno, said) from error
        return False
    return user == 0


def _bind(path: str, stage: str) -> None:
    source, target = Path(path), Path(stage + path)
    if not source.exists() or target.exists():  # a parent given earlier already shows it
        return
    if source.is_dir():
        target.mkdir(mode=0o755, parents=True)
    else:
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        target.touch(mode=0o644)
    linux.mount(path, str(target), "", linux.MS_BIND | linux.MS_REC)
    if path not in DEVICES:
        with contextlib.suppress(OSError):  # a user namespace may not change locked flags; Landlock refuses writes
            linux.mount("none", str(target), "", READ_ONLY)


def private(tmp_bytes: int, uid: int | None) -> None:
    """Inside a fresh pid and mount namespace: its own ``/proc`` and an empty, bounded ``TMP``.

    Raises:
        OSError: the kernel refuses.
    """
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV)
    owner = "" if uid is None else f",uid={uid},gid={uid}"
    linux.mount("none", TMP, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, 
                f"mode=0700,size={tmp_bytes},nr_inodes={TMP_NAMES}{owner}")
