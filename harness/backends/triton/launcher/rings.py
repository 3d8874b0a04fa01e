"""Slots of one array under the clock, each laid out exactly as a single call's memory: a kernel that looks behind its
arrays finds the same there, so that it cannot tell whether it is being timed.

A call's array lies in a mapping of its own: guard band, array, guard band, then ``REST`` up to the end of the granule.
A slot is one such stretch, bands with the same contents included, and slots begin at granules.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_size_t, c_ulonglong, c_void_p
from typing import Any

from harness.backends.triton.launcher.arena import ALIGN, Arena, Block, rounded
from harness.backends.triton.launcher.arrays import span_bytes
from harness.backends.triton.launcher.driver import Cuda

REST = 0xFFFF
"""Sixteen bits, repeated from the end of a memory file to the end of its granule: NaN, or -1 in an integer."""
WORD = 16
"""Bytes of the fingerprint kernel's words."""


def fill_rest(cuda: Cuda, stream: c_void_p, start: int, used: int, whole: int) -> None:
    """``REST`` from ``start + used`` to ``start + whole``; where ``used`` is odd, the byte in between stays."""
    used = rounded(used, 2)
    if whole > used:
        cuda.fill16(start + used, REST, whole - used, stream)


class Ring:
    """``slots`` slots of one array."""

    def __init__(self, cuda: Cuda, arena: Arena, array: dict[str, Any], slots: int) -> None:
        self._cuda, self.array, self.slots = cuda, array, slots
        self.is_input = array["kind"] == "input"
        self._unit = ALIGN if arena.plain else arena.unit
        self.stride = rounded(int(array["nbytes"]), self._unit)
        self.block = arena.allocate(self.stride * slots)

    def place(self, slot: int) -> int:
        """The slot that holds ``slot``'s contents: the only one where they do not change per call."""
        return slot if self.slots > 1 else 0

    def start(self, slot: int) -> int:
        """Where a slot begins, its first guard band included."""
        return self.block.address + self.place(slot) * self.stride

    def address(self, slot: int) -> int:
        """Where the array of a slot begins: with the residue that it was lent with."""
        return self.start(slot) + int(self.array["offset"])

    def lay(self, stream: c_void_p, file: Block) -> None:
        """Every slot as the memory file that ``file`` is a device copy of, and the rest behind it."""
        for slot in range(self.slots):
            copy(self._cuda, stream, self.start(slot), file.address, int(self.array["nbytes"]))
            fill_rest(self._cuda, stream, self.start(slot), int(self.array["nbytes"]), self.stride)

    def words(self, slot: int) -> tuple[int, int]:
        """Start and bytes of the whole words that hold the array."""
        start = self.address(slot) // WORD * WORD
        return start, rounded(self.address(slot) + span_bytes(self.array), WORD) - start

    def surroundings(self, slot: int) -> Sequence[tuple[int, int]]:
        """Start and bytes of what lies before and behind the array of a slot, in whole words."""
        start, (first, count) = self.start(slot), self.words(slot)
        return ((start, first - start), (first + count, start + self.stride - first - count))

    def distinct(self, slots: Sequence[int]) -> Sequence[int]:
        """Those of ``slots`` that are different places here."""
        return slots if self.slots > 1 else slots[:1]


def copy(cuda: Cuda, stream: c_void_p, target: int, source: int, count: int) -> None:
    """``count`` bytes from device memory to device memory, in stream order."""
    cuda("cuMemcpyDtoDAsync_v2", c_ulonglong(target), c_ulonglong(source), c_size_t(count), stream)


def bytes_at(cuda: Cuda, address: int, count: int) -> bytes:
    """``count`` bytes of device memory; waits for the device."""
    data = (ctypes.c_char * count)()
    cuda.download(data, address, count)
    return bytes(data)
