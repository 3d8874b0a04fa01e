"""One measured shape on a device: first contents, ring and batches, and the rounds that the judge draws for it."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from harness.backends.triton.launcher.requests import Keep, RoundRequest, Sweep
from harness.evaluation.buffers import DTYPES
from harness.evaluation.judge.bases import Base, Bases, make_base
from harness.evaluation.judge.rows import inner_dim, row_dim
from harness.evaluation.ports import Lent
from harness.evaluation.timing.device.contents import Factors, Starts, elements, is_renewed
from harness.evaluation.timing.sides import CANDIDATE
from harness.operators.base import OperatorSpec, ShapePoint

CACHES, LEAST_SLOTS, MOST_SLOTS = 3, 4, 256
"""A ring holds three times the L2 cache and at least four slots; tiny calls stop at 256 slots, whose graph is captured
whole for the slope. Every cold sample is flushed besides."""
MEMORY_SHARE = 0.25
BATCH_US, MOST_BATCH = 100.0, 16
"""A sample is a batch of calls that takes about 100 us, each on a slot of its own: events around one call contain about
2.5 us of launch latency (measured on an H200: 23.1 us where calls back to back take 20.3), which draws the ratio of
two short kernels towards 1. Calls of 100 us and more are timed one by one."""
MOST_WINDOWS = 8
"""Different stretches of the ring that one round uses: each costs a graph per side. Contents are new every time."""
HOT_SWEEPS = 2
"""Samples of a round that find their inputs in the caches, as far as they fit: the launcher has just read them with a
kernel of its own, for the side itself must not have met these contents."""
KEPT_SWEEPS = 3
KEPT_ELEMENTS = 16_384
"""Elements of an output, about, that are kept of a verified sample; a block of whole rows."""
MOST_ROW_ELEMENTS = 1 << 22
"""A row with more elements of renewed inputs is kept, and verified, in part where its indices are independent."""
PROBED_ELEMENTS = 4096
"""Elements of a renewed input that are kept beside them: the judge has to arrive at the same bits."""
MOST_SPACER = 64 << 20
SLOPE_S = 4e-3
"""Seconds of back-to-back calls behind the shorter point of a slope."""


class Shape:
    """First contents of one shape and what is drawn for its rounds. Close it."""

    def __init__(self, spec: OperatorSpec, point: ShapePoint, *, dtype: str, regimes: tuple[str, ...], seed: int,
                 source: random.Random, stage: str, base: Base | None = None) -> None:
        """The contents of ``base``, else new ones from ``seed`` and ``stage``; every other choice from ``source``."""
        self.spec, self.point, self.dtype, self._random = spec, point, dtype, source
        made = base or make_base(spec, point, dtype, regimes, seed, "device", stage)
        self.inputs, self.lending = made.inputs, made.lending
        self.attributes = made.lending.attributes
        self.renewed: tuple[Lent, ...] = tuple(
            item for item, argument in zip(self.lending.lent, spec.arguments, strict=True)
            if is_renewed(item, argument.per_call))
        self.starts = Starts([elements(item) for item in self.renewed], source)
        self.rows = row_dim(spec)
        self.inner = inner_dim(spec)
        self.batch = 1
        """Calls of a sample."""
        self.expected_us: float | None = None
        """What a call takes, about, once it was measured; decides how long slopes are."""
        self.slowest_us: float | None = None
        """The same of the slowest kernel measured."""
        self.near: tuple[float, float] | None = None
        """How close two sides' outputs are, (relative, absolute); see ``closeness``."""

    @property
    def label(self) -> str:
        """The shape's name."""
        return self.point.label

    @property
    def ring_bytes(self) -> int:
        """Bytes of one slot: the arrays that every slot has its own of."""
        names = {item.name for item in self.renewed}
        return sum(nbytes(item) for item in self.lending.lent if item.kind == "output" or item.name in names)

    @property
    def written_bytes(self) -> int:
        """Bytes of the outputs of one call."""
        return sum(nbytes(item) for item in self.lending.lent if item.kind == "output")

    def widen(self, absolute: float) -> None:
        """Let outputs be apart by ``absolute`` at least: the oracle accepts as much."""
        if self.near is not None:
            self.near = (self.near[0], max(self.near[1], absolute))

    def close(self) -> None:
        """Give the memory back; idempotent."""
        self.lending.close()

    def slots(self, l2_bytes: int, memory_bytes: int) -> int:
        """Slots of the ring on a device of these sizes."""
        wanted = max(LEAST_SLOTS, -(-CACHES * l2_bytes // self.ring_bytes), self.batch)
        return max(1, min(wanted, MOST_SLOTS, int(MEMORY_SHARE * memory_bytes) // self.ring_bytes))

    def round(self, factors: Factors, handles: Mapping[str, int], pairs: int, *, l2_bytes: int, memory_bytes: int,
              slope_us: float | None = None, trusted: str | None = None) -> RoundRequest:
        """A launcher round of ``pairs`` cold sweeps and a few hot ones among them; ``slope_us``, the expected time of a
        call, asks for slopes. The candidate's outputs are compared with those of ``trusted``, where both run and it is
        known how close they have to be."""
        slots = self.slots(l2_bytes, memory_bytes)
        batch = min(self.batch, slots)
        windows = self._windows(slots, batch)
        total = pairs + HOT_SWEEPS
        hot = set(self._random.sample(range(total), HOT_SWEEPS))
        cached = max(1, l2_bytes // self.ring_bytes)  # a hot sample takes no more slots than the cache holds
        kept = set(self._random.sample(range(total), min(KEPT_SWEEPS, total))) if CANDIDATE in handles else set()
        sweeps = []
        for number in range(total):
            chosen = self._random.choice(windows)[: cached if number in hot else None]
            sweeps.append(Sweep(
                slots=chosen, starts=tuple(self.starts.draw() for _ in chosen),
                order=tuple(self._random.sample(list(handles), len(handles))), poison=self._poison(),
                kept_side=CANDIDATE, keeps=self._keeps(self._random.choice(chosen)) if number in kept else (),
                flush=number not in hot,
            ))
        slope = 0 if slope_us is None else max(1, round(SLOPE_S / (slots * slope_us * 1e-6)))
        compared: dict[str, Any] = {}
        if self.near is not None and trusted is not None and {CANDIDATE, trusted} <= set(handles):
            compared = {"near": self.near, "compared": (CANDIDATE, trusted)}
        return RoundRequest(
            arrays=self.lending.lent, renewed=tuple(item.name for item in self.renewed), factors=factors.fd,
            factor_count=self.starts.count, sides=dict(handles), slots=slots, sweeps=tuple(sweeps),
            spacer=self._random.randrange(MOST_SPACER) // 512 * 512, slope=slope, **compared,
        )

    def settle(self, us: Sequence[float]) -> None:
        """Choose batches and the length of slopes for kernels whose calls take ``us`` microseconds each."""
        fastest, self.slowest_us = min(us), max(us)
        self.expected_us = max(fastest, self.slowest_us / 4)
        self.batch = min(MOST_BATCH, math.ceil(BATCH_US / max(fastest, 1e-3)))

    def _windows(self, slots: int, batch: int) -> list[tuple[int, ...]]:
        order = self._random.sample(range(slots), slots)
        windows = [tuple(order[first : first + batch]) for first in range(0, slots - batch + 1, batch)]
        return windows[:MOST_WINDOWS]

    def _poison(self) -> int:
        """Sixteen bits: scratch holds them, outputs what ``output_poison`` makes of them."""
        return self._random.getrandbits(16)

    def _keeps(self, slot: int) -> tuple[Keep, ...]:
        """A random block of rows of every output, of indices of one row where rows are large and have independent ones,
        and a random stretch of every renewed input."""
        keeps = []
        outputs = [item for item in self.lending.lent if item.kind == "output"]
        rows = outputs[0].shape[0] if self.rows else 1
        inside = self.point.dims[self.inner] if self.inner else 1
        if inside > 1 and (max(elements(item) // rows for item in outputs) > KEPT_ELEMENTS
                           or self._row_elements > MOST_ROW_ELEMENTS):
            return self._within_a_row(slot, outputs, rows, inside) + self._stretches(slot)
        widest = max(elements(item) // rows for item in outputs)
        count = max(1, min(rows, KEPT_ELEMENTS // max(widest, 1)))
        first = self._random.randrange(rows - count + 1)
        for item in outputs:
            row = nbytes(item) // rows
            keeps.append(Keep(item.name, slot, first * row, count * row))
        return tuple(keeps) + self._stretches(slot)

    def _within_a_row(self, slot: int, outputs: list[Lent], rows: int, inside: int) -> tuple[Keep, ...]:
        each = max(elements(item) // (rows * inside) for item in outputs)
        cost = self._row_elements // inside
        count = max(1, min(inside, KEPT_ELEMENTS // max(each, 1), MOST_ROW_ELEMENTS // max(cost, 1)))
        first = self._random.randrange(rows) * inside + self._random.randrange(inside - count + 1)
        widths = {item.name: nbytes(item) // (rows * inside) for item in outputs}
        return tuple(Keep(name, slot, first * width, count * width) for name, width in widths.items())

    @property
    def _row_elements(self) -> int:
        """Elements of renewed inputs that one row has."""
        return sum(elements(item) for item in self.renewed) // (self.point.dims[self.rows] if self.rows else 1)

    def _stretches(self, slot: int) -> tuple[Keep, ...]:
        keeps = []
        for item in self.renewed:
            width, many = width_of(item), min(PROBED_ELEMENTS, elements(item))
            start = self._random.randrange(elements(item) - many + 1)
            keeps.append(Keep(item.name, slot, start * width, many * width))
        return tuple(keeps)


def prepare(spec: OperatorSpec, points: tuple[ShapePoint, ...], *, dtype: str, regimes: tuple[str, ...], seed: int,
            source: random.Random, stage: str, bases: Bases | None = None) -> dict[str, Shape]:
    """All shapes by label. Those without ``bases`` are made by several threads already, so one after the other."""
    made: dict[str, Shape] = {}
    try:
        for point in points:
            made[point.label] = Shape(spec, point, dtype=dtype, regimes=point.regimes or regimes, seed=seed,
                                      source=source, stage=stage,
                                      base=bases[point.label] if bases is not None else None)
    except BaseException:
        for shape in made.values():
            shape.close()
        raise
    return made


def width_of(item: Lent) -> int:
    """Bytes of one element."""
    return DTYPES[item.dtype].itemsize


def nbytes(item: Lent) -> int:
    """Bytes of the array itself."""
    return elements(item) * width_of(item)
