"""The few system calls Python does not offer, through ctypes. Every function raises ``OSError`` on refusal."""

from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38

MAP_FIXED, MAP_NORESERVE, MAP_POPULATE = 0x10, 0x4000, 0x8000
MAP_FAILED = ctypes.c_void_p(-1).value

PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
CAPSET = {"x86_64": 126, "aarch64": 91}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def _check(result: int, what: str) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *arguments: int | ctypes.Array[ctypes.c_char] | ctypes.Structure) -> int:
    """A raw system call; integers are passed as C longs, structures by reference."""
    words = [
        ctypes.c_long(a) if isinstance(a, int) else ctypes.byref(a) if isinstance(a, ctypes.Structure) else a
        for a in arguments
    ]
    return _check(_libc.syscall(ctypes.c_long(number), *words), f"system call {number}")


def prctl(option: int, value: int = 0, pointer: int = 0) -> int:
    """``prctl(option, value, pointer, 0, 0)``."""
    zero = ctypes.c_ulong(0)
    return _check(_libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(pointer), zero, zero), f"prctl {option}")


def unshare(flags: int) -> None:
    """Leave the namespaces named by ``flags``."""
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    """Mount ``source`` at ``target``."""
    result = _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode() or None)
    _check(result, f"mount {target}")


def unmount(target: str) -> None:
    """Detach ``target`` lazily."""
    _check(_libc.umount2(target.encode(), MNT_DETACH), f"unmount {target}")


def pivot_root(new: str, old: str) -> None:
    """Make ``new`` the root and put the old one at ``old``."""
    number = PIVOT_ROOT[platform.machine()]
    _check(_libc.syscall(ctypes.c_long(number), new.encode(), old.encode()), "pivot_root")


def drop_capabilities() -> None:
    """Empty all capability sets and the bounding set of this thread."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for capability in range(last + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # without CAP_SETPCAP there is nothing to drop
            break
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _check(_libc.syscall(ctypes.c_long(CAPSET[platform.machine()]), header, (ctypes.c_uint32 * 6)()), "capset")


def mmap(address: int, length: int, protection: int, flags: int, fd: int = -1) -> int:
    """Map memory and return its address."""
    result = _libc.mmap(address or None, length, protection, flags, fd, 0)
    if result == MAP_FAILED or result is None:
        number = ctypes.get_errno()
        raise OSError(number, f"mmap: {os.strerror(number)}")
    return result


def munmap(address: int, length: int) -> None:
    """Unmap memory."""
    _check(_libc.munmap(address, length), "munmap")
