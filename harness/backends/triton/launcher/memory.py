"""Memory files of the judge, mapped by address: inputs for reading only, without copying a page."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
FAILED = ctypes.c_void_p(-1).value


@contextmanager
def mapped(fd: int, nbytes: int, *, writable: bool = False) -> Iterator[int]:
    """The address of the first ``nbytes`` of ``fd``, which is closed. Pages are mapped at once: faulting them in one
    by one takes longer than the copy to the device.

    Raises:
        OSError: it cannot be mapped.
    """
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    address = _LIBC.mmap(None, nbytes, access, mmap.MAP_SHARED | mmap.MAP_POPULATE, fd, 0)
    os.close(fd)
    if address == FAILED:
        raise OSError(ctypes.get_errno(), "a memory file could not be mapped")
    try:
        yield address
    finally:
        _LIBC.munmap(address, nbytes)
