"""Device memory of a launcher: every block lies between unmapped pages, hidden from kernels that do not own it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from ctypes import c_int, c_size_t, c_ulonglong

from harness.backends.triton.launcher.driver import AccessDescription, AllocationProperties, Cuda, Location

ON_DEVICE, PINNED, NO_ACCESS, READ_WRITE = 1, 1, 0, 3
ALIGN = 512
"""Alignment of every buffer, bytes: recorded addresses are known modulo this."""


def rounded(count: int, unit: int) -> int:
    """``count`` rounded up to a multiple of ``unit``."""
    return -(-count // unit) * unit


class Block:
    """One mapping. ``address`` is aligned to the device's granularity (2 MiB); ``nbytes`` were asked for."""

    def __init__(self, address: int, nbytes: int, reserved: tuple[int, int], mapped: int, handle: int) -> None:
        self.address, self.nbytes = address, nbytes
        self.reserved, self.mapped, self.handle = reserved, mapped, handle
        self.visible = True


class Arena:
    """Allocates blocks. With ``plain`` (under a sanitizer) each one is an ordinary allocation of exact size instead:
    the sanitizer watches those, and it cannot hide or guard anything itself."""

    def __init__(self, cuda: Cuda, *, plain: bool = False) -> None:
        self._cuda, self.plain = cuda, plain
        self._blocks: list[Block] = []
        self._properties = AllocationProperties(PINNED, 0, Location(ON_DEVICE, cuda.device), None, 0)
        unit = c_size_t()
        cuda("cuMemGetAllocationGranularity", ctypes.byref(unit), ctypes.byref(self._properties), c_int(0))
        self.unit = unit.value

    def allocate(self, nbytes: int) -> Block:
        """A block of ``nbytes`` (at least one) between two unmapped granules.

        Raises:
            CudaError: the device has not enough memory.
        """
        if self.plain:
            made = c_ulonglong()
            self._cuda("cuMemAlloc_v2", ctypes.byref(made), c_size_t(max(nbytes, 1)))
            block = Block(made.value, nbytes, (0, 0), 0, 0)
            self._blocks.append(block)
            return block
        size = rounded(max(nbytes, 1), self.unit)
        span = size + 2 * self.unit
        start, handle = c_ulonglong(), c_ulonglong()
        self._cuda("cuMemCreate", ctypes.byref(handle), c_size_t(size), ctypes.byref(self._properties), c_ulonglong(0))
        try:
            self._cuda("cuMemAddressReserve", ctypes.byref(start), c_size_t(span), c_size_t(0), c_ulonglong(0),
                       c_ulonglong(0))
        except BaseException:
            self._cuda("cuMemRelease", handle)
            raise
        address = start.value + self.unit
        self._cuda("cuMemMap", c_ulonglong(address), c_size_t(size), c_size_t(0), handle, c_ulonglong(0))
        block = Block(address, nbytes, (start.value, span), size, handle.value)
        self._blocks.append(block)
        self._access(block, READ_WRITE)
        return block

    def show(self, blocks: Iterable[Block]) -> None:
        """Let kernels reach ``blocks``. The device must be idle."""
        for block in blocks:
            if not block.visible:
                self._access(block, READ_WRITE)
                block.visible = True

    def hide(self, blocks: Iterable[Block]) -> None:
        """Turn any access to ``blocks`` into a fault until they are shown again. The device must be idle."""
        for block in blocks:
            if block.visible and not self.plain:
                self._access(block, NO_ACCESS)
                block.visible = False

    def free(self, blocks: Iterable[Block]) -> None:
        """Give ``blocks`` back. The device must be idle."""
        for block in list(blocks):
            self._blocks.remove(block)
            if self.plain:
                self._cuda("cuMemFree_v2", c_ulonglong(block.address))
                continue
            self._cuda("cuMemUnmap", c_ulonglong(block.address), c_size_t(block.mapped))
            self._cuda("cuMemRelease", c_ulonglong(block.handle))
            self._cuda("cuMemAddressFree", c_ulonglong(block.reserved[0]), c_size_t(block.reserved[1]))

    def clear(self) -> None:
        """Give everything back."""
        self.free(self._blocks)

    def _access(self, block: Block, flags: int) -> None:
        wanted = AccessDescription(Location(ON_DEVICE, self._cuda.device), flags)
        self._cuda("cuMemSetAccess", c_ulonglong(block.address), c_size_t(block.mapped), ctypes.byref(wanted),
                   c_size_t(1))
