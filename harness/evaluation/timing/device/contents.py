"""New contents for every sample: first contents times factors, computed on the device and, for what is verified, here.

The table is shorter than most arrays and repeated along them. Its length is prime, so that rows do not share factors.
"""

from __future__ import annotations

import math
import mmap
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harness.domain.errors import InfrastructureError
from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.ring import LEAST_FACTOR, SPARE
from harness.evaluation.judge.seeds import generator
from harness.evaluation.ports import Lent

TABLE = 1_000_003
"""Factors in the table; a prime."""
SHORT_TABLE = 499_979
"""As many are used where an array is nearly as long as the table and would leave few different starts; a prime."""

PIECE = 1 << 17
"""Elements that are renewed together."""


class Factors:
    """The table in a memory file. Close it."""

    def __init__(self, seed: int, *labels: object) -> None:
        """Float32 values in [0.75, 1]; equal seeds and labels give equal tables."""
        draw = generator(seed, "renewal", *labels)
        self.values = torch.rand(TABLE, generator=draw) * (1 - LEAST_FACTOR) + LEAST_FACTOR
        self.fd = os.memfd_create("factors", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, 4 * TABLE)
        with mmap.mmap(self.fd, 4 * TABLE) as memory:
            memory[:] = self.values.numpy().tobytes()

    def close(self) -> None:
        """Give the memory back; idempotent."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


@dataclass(frozen=True, slots=True)
class Stretch:
    """Where the factors of one array begin in the table, of which ``count`` are used and repeated along the array."""

    start: int
    count: int
    elements: int

    def factors(self, table: torch.Tensor, first: int, last: int) -> torch.Tensor:
        """The factors of the flat elements from ``first`` to ``last``."""
        place, wanted = (self.start + first) % self.count, last - first
        if place + wanted <= self.count:
            return table[place : place + wanted]
        whole, rest = divmod(place + wanted - self.count, self.count)
        used = table[: self.count]
        return torch.cat([used[place:], *[used] * whole, used[:rest]])


class Starts:
    """Starts for one shape's renewed arrays, so that none of them ever holds the same contents twice."""

    def __init__(self, sizes: Sequence[int], source: random.Random) -> None:
        """``sizes``: elements of the renewed arrays in signature order."""
        self.sizes, self._random = tuple(sizes), source
        self.count = SHORT_TABLE if any(TABLE - SPARE < size < TABLE for size in sizes) else TABLE
        self._seen: list[set[int]] = [set() for _ in sizes]
        places = [self.count - size + 1 if self.count > size else self.count for size in sizes]
        self.most = min(places, default=self.count) // 2  # beyond it, drawing what is new would take long

    def draw(self) -> int:
        """A start that gives every array new contents.

        Raises:
            InfrastructureError: after far more draws than a session asks for.
        """
        if self._seen and len(self._seen[0]) >= self.most:
            raise InfrastructureError("A timing session asked for more new contents than its factors can give.")
        while True:
            start = self._random.randrange(self.count)
            reduced = [stretch.start for stretch in self.stretches(start)]
            if all(one not in seen for one, seen in zip(reduced, self._seen, strict=True)):
                for one, seen in zip(reduced, self._seen, strict=True):
                    seen.add(one)
                return start

    def stretches(self, start: int) -> tuple[Stretch, ...]:
        """Where each array's factors begin: one after the other, each start taken modulo the places it may have (all of
        the table where the array is longer and the table repeats)."""
        found = []
        for elements in self.sizes:
            start %= self.count - elements + 1 if self.count > elements else self.count
            found.append(Stretch(start, self.count, elements))
            start += elements
        return tuple(found)


def renewed(base: torch.Tensor, stretch: Stretch, table: torch.Tensor, first: int, last: int) -> torch.Tensor:
    """The elements ``first`` to ``last`` of a flat array as the device holds them: the product in float32, rounded once
    to the array's dtype, to nearest even. Made in pieces that stay in a core's cache."""
    made = torch.empty(last - first, dtype=base.dtype)
    for start in range(first, last, PIECE):
        end = min(last, start + PIECE)
        made[start - first : end - first] = base[start:end].float() * stretch.factors(table, start, end)
    return made


def renewed_within(base: torch.Tensor, stretch: Stretch, table: torch.Tensor, rows: range, axis: int,
                   part: range) -> torch.Tensor:
    """``renewed`` for some ``rows`` of the whole array ``base`` and a ``part`` of their indices along ``axis``, which
    is not the first; what is left out costs nothing."""
    inner = math.prod(base.shape[axis + 1 :])
    lines = base.view(-1, base.shape[axis], inner)  # one line for all indices in front of the axis
    each, size, many = math.prod(base.shape[1:axis]), base.shape[axis] * inner, len(part) * inner
    first, last = rows.start * each, rows.stop * each
    made = torch.empty((last - first, len(part), inner), dtype=base.dtype)
    step = max(1, PIECE // size)
    for start in range(first, last, step):
        end = min(last, start + step)
        place = start * size + part.start * inner
        factors = stretch.factors(table, place, place + (end - start - 1) * size + many)
        made[start - first : end - first] = (lines[start:end, part.start : part.stop].float()
                                             * factors.as_strided((end - start, len(part), inner), (size, inner, 1)))
    return made.view(len(rows), *base.shape[1:axis], len(part), *base.shape[axis + 1 :])


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two arrays of one dtype are equal bit for bit; any NaN equals any other, because their bits are the
    arithmetic's own affair."""
    kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[left.element_size()]
    equal = left.view(kind) == right.view(kind)
    if left.dtype.is_floating_point:
        equal = equal | (left.isnan() & right.isnan())
    return bool(equal.all())


def is_renewed(item: Lent, per_call: bool) -> bool:
    """Whether an argument gets new contents: floating-point inputs that change per call."""
    return item.kind == "input" and per_call and dtype_of(item.dtype).is_floating_point


def elements(item: Lent) -> int:
    """Number of elements of an argument."""
    return math.prod(item.shape)
