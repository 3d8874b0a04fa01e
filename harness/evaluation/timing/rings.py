"""The memory of a timing session: for every shape a ring of slots whose contents the judge renews.

Timed arrays are dense. To numba strided rows are another type: each process would compile one more specialisation, up
to eleven times as slow, and the figures would mix two programs. That a kernel is right on strided rows and shifted
bases of the measured shapes is for the correctness stage, which runs the same code on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.evaluation.judge import ring as judge_ring
from harness.evaluation.judge.lending import Lending
from harness.operators.base import OperatorSpec, ShapePoint

LEAST_SLOTS, MOST_SLOTS, MOST_RING_BYTES = 4, 32, 512 << 20
ITEM_BYTES = {"float16": 2, "bfloat16": 2, "int64": 8}
CACHES = 3
"""A ring holds at least this many times the last-level cache, where ``MOST_SLOTS`` allows."""
HOT_SHARE = 0.5
"""Share of the last-level cache that the slots of a hot sample fill at most, where more than one fits."""


@dataclass(frozen=True, slots=True)
class Ring:
    """All slots of one shape. ``footprint``: their bytes together; ``hot``: how many stay in the caches together."""

    slots: list[Lending]
    renewal: judge_ring.Renewal
    footprint: int
    hot: int

    def __len__(self) -> int:
        return len(self.slots)

    def chosen(self, slots: Sequence[int]) -> list[Lending]:
        """The slots of these numbers."""
        return [self.slots[slot] for slot in slots]

    def renew(self, slots: Sequence[int]) -> None:
        """Contents that nobody saw before; every process must be frozen."""
        self.renewal.renew(self.chosen(slots))

    def close(self) -> None:
        """Give the memory back."""
        for lending in self.slots:
            lending.close()


class Rings(dict[str, Ring]):
    """The rings of all shapes by label, from the screening to the end of the recheck: what one of them renewed, the
    other never renews to again. Close them."""

    def __init__(self, spec: OperatorSpec, points: Sequence[ShapePoint], dtype: str, regimes: tuple[str, ...],
                 seed: int, last_level_bytes: int) -> None:
        """Contents from ``seed`` and the shapes' labels; ``regimes``, or a shape's own, are mixed within
        every tensor."""
        super().__init__()
        try:
            for point in points:
                self[point.label] = _make(spec, point, dtype, point.regimes or regimes, seed, last_level_bytes)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the memory back; idempotent."""
        for ring in self.values():
            ring.close()
        self.clear()


def _make(spec: OperatorSpec, point: ShapePoint, dtype: str, regimes: tuple[str, ...], seed: int,
          last_level_bytes: int) -> Ring:
    slot_bytes = bytes_lent(spec, point, dtype)
    count = ring_slots(slot_bytes, last_level_bytes)
    slots = judge_ring.fresh_inputs(spec, point, dtype, regimes, seed, count, point.label)
    return Ring(slots, judge_ring.Renewal(slots, seed, point.label), count * slot_bytes,
                hot_slots(slot_bytes, last_level_bytes, count))


def ring_slots(slot_bytes: int, last_level_bytes: int) -> int:
    """Slots of a ring: enough to leave the caches, at least four, within bounds of number and memory."""
    wanted = -(-CACHES * last_level_bytes // slot_bytes)
    most = max(1, min(MOST_SLOTS, MOST_RING_BYTES // slot_bytes))
    return max(min(wanted, most), min(LEAST_SLOTS, most))


def hot_slots(slot_bytes: int, last_level_bytes: int, slots: int) -> int:
    """Slots that fit the last-level cache together with room to spare; at least one, at most ``slots``."""
    return max(1, min(slots, int(HOT_SHARE * last_level_bytes) // slot_bytes))


def bytes_lent(spec: OperatorSpec, point: ShapePoint, dtype: str) -> int:
    """Bytes of all arrays of one call."""
    return sum(
        ITEM_BYTES.get(argument.dtype or dtype, 4) * math.prod(point.dims[dim] for dim in argument.dims)
        for argument in spec.arguments
    )
