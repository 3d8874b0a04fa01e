"""Memory files lent to candidates: sealed inputs and poisoned outputs, both between guard bands.

A file holds nothing but one array and its guard bands. Inputs are sealed against writing by the kernel, so that no
process can change them; outputs are sealed in size only and read after the worker was frozen.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import mmap
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch

from harness.domain.errors import InfrastructureError
from harness.evaluation.poison import output_poison
from harness.evaluation.ports import ROW_GAP, Lent

BAND = 65536
"""Bytes of guard band on either side: wider than the largest block a tail store can miss by."""

Layout = Literal["dense", "strided", "offset"]
DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int32": torch.int32,
    "int64": torch.int64,
}
BITS = {4: torch.int32, 2: torch.int16, 8: torch.int64}


def dtype_of(name: str) -> torch.dtype:
    """The torch dtype called ``name``."""
    return DTYPES[name]


def dtype_name(dtype: torch.dtype) -> str:
    """The document's name of a torch dtype."""
    return str(dtype).removeprefix("torch.")


F_SEAL_FUTURE_WRITE = 0x10
"""Nobody may write from now on, but through the mappings that exist already (Linux 5.1)."""


def lend_input(name: str, values: torch.Tensor, layout: Layout = "dense", gap: int = ROW_GAP) -> Lent:
    """Copy ``values`` (dense) into a sealed memory file. Guard bands and row gaps hold NaN or the largest integer.

    ``strided`` puts ``gap`` elements between rows of a 2-d array, ``offset`` shifts the base by one element.
    The caller closes ``fd``. Raises ``InfrastructureError`` where memory files cannot be sealed.
    """
    return _lend(name, values, layout, gap, renewable=False)[0]


class InputFile:
    """A dense input written piece by piece into its memory file and then sealed; nothing has to be copied afterwards.

    Pieces are written, not mapped: on memory that is touched for the first time that takes a third less. Close it,
    unless what ``seal`` gave is closed."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        """Room for ``shape`` between guard bands."""
        self._name, self._shape, self._dtype = name, shape, dtype
        item = torch.empty(0, dtype=dtype).element_size()
        self._count = math.prod(shape)
        self._end = BAND + self._count * item
        self._nbytes = self._end + BAND
        self._fd = _file(name, self._nbytes)
        band = torch.full((BAND // item,), _outside(dtype), dtype=dtype)
        self._put(band, 0)
        self._put(band, self._end)

    def write(self, values: torch.Tensor, first: int = 0) -> None:
        """Put ``values`` at the flat elements from ``first`` on; several threads may write different places.

        Raises:
            ValueError: they have another dtype or do not fit.
        """
        if values.dtype is not self._dtype or not 0 <= first <= self._count - values.numel():
            raise ValueError(f"{values.numel()} elements of {values.dtype} do not fit into input '{self._name}' at "
                             f"{first}: it has {self._count} of {self._dtype}.")
        self._put(values, BAND + first * values.element_size())

    def seal(self) -> tuple[Lent, torch.Tensor]:
        """The file, which nobody can change any more, and the judge's own view of it: what is written there, if
        anything is, stays the judge's. The caller closes ``fd``. Raises as ``lend_input`` does."""
        _seal(self._fd, fcntl.F_SEAL_WRITE)
        memory = mmap.mmap(self._fd, self._nbytes, access=mmap.ACCESS_COPY)
        values = torch.frombuffer(memory, dtype=self._dtype, count=self._count, offset=BAND).view(self._shape)
        lent = Lent(name=self._name, kind="input", dtype=dtype_name(self._dtype), shape=self._shape,
                    strides=_strides(self._shape, 0), offset=BAND, nbytes=self._nbytes, fd=self._fd)
        self._fd = -1
        return lent, values

    def close(self) -> None:
        """Give the memory of a file that was not sealed back; idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _put(self, values: torch.Tensor, offset: int) -> None:
        flat = values.contiguous().as_strided((values.numel(),), (1,))  # a single element may have any stride
        rest = flat.view(torch.uint8).numpy().data
        while len(rest):
            written = os.pwrite(self._fd, rest, offset)  # two gigabytes at a time at most
            rest, offset = rest[written:], offset + written


class RenewableInput:
    """An input whose contents the judge alone may replace between calls: a worker can only map it for reading."""

    def __init__(self, name: str, values: torch.Tensor) -> None:
        """Lend ``values`` (dense). The caller closes ``lent.fd``; raises as ``lend_input`` does."""
        self.lent, memory = _lend(name, values, "dense", ROW_GAP, renewable=True)
        assert memory is not None
        self._start = values
        self._now = torch.frombuffer(memory, dtype=values.dtype, count=values.numel(), offset=self.lent.offset)

    def renew(self, factors: torch.Tensor, turns: Mapping[int, int] | None = None) -> None:
        """Replace the contents by the first ones, turned by so many places along each axis of ``turns``, times
        ``factors``, one per element (same number of elements)."""
        turned = self._start.roll(tuple(turns.values()), tuple(turns)) if turns else self._start
        torch.mul(turned.flatten(), factors, out=self._now)

    def put(self, values: torch.Tensor) -> None:
        """Replace the contents by ``values`` of the same shape, until they are renewed."""
        self._now.copy_(values.flatten())

    def touch(self) -> None:
        """Read the contents once on the calling thread's core, which leaves them in its caches as far as they fit."""
        self._now.view(torch.uint8).max()

    def values(self) -> torch.Tensor:
        """A copy of the contents as they are."""
        return self._now.clone().view(self._start.shape)


def _lend(
    name: str, values: torch.Tensor, layout: Layout, gap: int, *, renewable: bool
) -> tuple[Lent, mmap.mmap | None]:
    """The memory file, and the judge's own mapping of it where it is ``renewable``. Written in one pass: a measured
    shape can have a gigabyte."""
    item = values.element_size()
    strides = _strides(tuple(values.shape), gap if layout == "strided" else 0)
    start = BAND // item + (1 if layout == "offset" else 0)
    span = 1 + sum((size - 1) * stride for size, stride in zip(values.shape, strides, strict=True))
    count = start + span + BAND // item
    fd = _file(name, count * item)
    try:
        memory = mmap.mmap(fd, count * item)
        block = torch.frombuffer(memory, dtype=values.dtype, count=count)
        for outside in (block,) if layout == "strided" else (block[:start], block[start + span :]):
            outside.fill_(_outside(values.dtype))
        block.as_strided(values.shape, strides, start).copy_(values)
        del block, outside  # a mapping that is in use cannot be closed
        if not renewable:
            memory.close()
        _seal(fd, F_SEAL_FUTURE_WRITE if renewable else fcntl.F_SEAL_WRITE)
    except BaseException:
        os.close(fd)
        raise
    lent = Lent(
        name=name,
        kind="input",
        dtype=dtype_name(values.dtype),
        shape=tuple(values.shape),
        strides=strides,
        offset=start * item,
        nbytes=count * item,
        fd=fd,
    )
    return lent, memory if renewable else None


@dataclass(frozen=True, slots=True)
class Overrun:
    """Bytes of a guard band that changed: ``side`` and the distance in elements of the farthest one."""

    side: Literal["before", "after"]
    elements: int


class OutputBlock:
    """One output in a memory file: a dense array between guard bands of random bytes."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, layout: Layout = "dense") -> None:
        item = torch.empty(0, dtype=dtype).element_size()
        count = 1
        for size in shape:
            count *= size
        start = BAND + (item if layout == "offset" else 0)
        nbytes = start + count * item + BAND
        fd = _file(name, nbytes)
        _seal(fd, 0)
        self._memory = mmap.mmap(fd, nbytes)
        self._item, self._start, self._end = item, start, start + count * item
        self._before = secrets.token_bytes(256) * (-(-start // 256))
        self._after = secrets.token_bytes(256) * (BAND // 256)
        self._bits = torch.frombuffer(self._memory, dtype=BITS[item], count=count, offset=start)
        self._poison = 0
        self.lent = Lent(
            name=name,
            kind="output",
            dtype=dtype_name(dtype),
            shape=shape,
            strides=_strides(shape, 0),
            offset=start,
            nbytes=nbytes,
            fd=fd,
        )

    def poison(self) -> None:
        """Restore the guard bands and fill the array with one huge finite value, drawn anew each time."""
        self._memory[: self._start] = self._before[: self._start]
        self._memory[self._end :] = self._after
        half = output_poison(self.lent.dtype, secrets.randbits(16)).to_bytes(2, "little")
        self._poison = int.from_bytes(half * (self._item // 2), "little")
        self._bits.fill_(self._poison)

    def read(self) -> tuple[torch.Tensor, torch.Tensor]:
        """A copy of the array and the mask of elements that still hold the poison."""
        bits = self._bits.clone()
        values = bits.view(DTYPES[self.lent.dtype]).view(self.lent.shape)
        return values, (bits == self._poison).view(self.lent.shape)

    def pick(self, places: torch.Tensor) -> torch.Tensor:
        """Copies of the elements at ``places`` (flat indices)."""
        return self._bits[places].view(DTYPES[self.lent.dtype])

    def overruns(self) -> list[Overrun]:
        """Which guard bands changed since ``poison``."""
        found = []
        before, after = self._before[: self._start], self._after
        if self._memory[: self._start] != before:
            now = self._memory[: self._start]
            first = next(index for index in range(self._start) if now[index] != before[index])
            found.append(Overrun("before", -(-(self._start - first) // self._item)))
        if self._memory[self._end :] != after:
            now = self._memory[self._end :]
            last = next(index for index in range(BAND - 1, -1, -1) if now[index] != after[index])
            found.append(Overrun("after", last // self._item + 1))
        return found

    def close(self) -> None:
        """Close the descriptor; the mapping goes with the object."""
        with contextlib.suppress(OSError):
            os.close(self.lent.fd)


def _strides(shape: tuple[int, ...], gap: int) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    if gap and len(shape) >= 2:
        strides[-2] += gap
        for axis in range(len(shape) - 3, -1, -1):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def _outside(dtype: torch.dtype) -> float | int:
    return torch.nan if dtype.is_floating_point else torch.iinfo(dtype).max


def _file(name: str, nbytes: int) -> int:
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, nbytes)
    return fd


def _seal(fd: int, more: int) -> None:
    try:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL | more)
    except OSError as error:
        raise InfrastructureError(
            f"A memory file could not be sealed ({error}), so inputs could be changed by a candidate and nothing was "
            "judged. Run on a Linux kernel of 3.17 or newer with memfd sealing."
        ) from error
