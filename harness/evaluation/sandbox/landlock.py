"""Landlock: which files a candidate process may open, at best TCP ports and signals as well."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

from harness.evaluation.sandbox import linux

CREATE, ADD, RESTRICT = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE, IOCTL_DEVICE = 1, 2, 4, 8, 1 << 14, 1 << 15
BEYOND_FILES = READ_DIR | 0x1FF0 | (1 << 13)  # rights that only make sense below a directory
ALL_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
ALL_FROM_5 = (1 << 16) - 1


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("fd", ctypes.c_int32)]


def abi() -> int:
    """The kernel's Landlock version, 0 where it has none."""
    try:
        return linux.syscall(CREATE, 0, 0, 1)
    except OSError:
        return 0


def restrict(readable: Sequence[str], writable: Sequence[str], executable: Sequence[str] = (),
             devices: Sequence[str] = ()) -> None:
    """Confine this process: read below ``readable``, everything but execution below ``writable``, nothing else.

    Only ``executable`` may be read and executed (none by default), only ``devices`` may be read, written and
    controlled. Paths that do not exist are skipped.

    Raises:
        OSError: the kernel has no Landlock or refuses the ruleset.
    """
    version = abi()
    if version < 1:
        raise OSError("this kernel has no Landlock")
    everything = ALL_BY_ABI.get(version, ALL_FROM_5)
    attributes = _Ruleset(everything, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = linux.syscall(CREATE, attributes, size, 0)
    try:
        for paths, access in (
            (readable, READ_FILE | READ_DIR), (executable, READ_FILE | READ_DIR | EXECUTE),
            (writable, everything & ~EXECUTE), (devices, READ_FILE | WRITE_FILE | IOCTL_DEVICE),
        ):
            for path in paths:
                _allow(ruleset, path, access & everything)
        linux.syscall(RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - runs in a forked child, where strings are enough
            access &= ~BEYOND_FILES
        linux.syscall(ADD, ruleset, 1, _Beneath(access, fd), 0)
    finally:
        os.close(fd)
