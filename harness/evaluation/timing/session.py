"""One timing session: rings of fresh inputs, process rounds, paired samples. The judge's clock alone is believed.

A sample is (T - c) / n: T the judge's seconds around a request for n calls, n drawn at random, each call on its own
ring slot, whose contents are new in every sweep; c the seconds of an empty request to a trusted process, so that the
figure is the slope of time over calls through an intercept that the candidate cannot forge. In a sweep every side gets
the same slots, in random order, and their outputs are compared.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.judge import ring as judge_ring
from harness.evaluation.judge.lending import Lending
from harness.evaluation.ports import CandidateFault
from harness.evaluation.run import Refused
from harness.evaluation.timing.sides import CANDIDATE, Side, close_sides, open_sides, opponent_failed
from harness.evaluation.timing.statistics import median
from harness.hardware import telemetry
from harness.hardware.cores import Cores
from harness.hardware.detect import detect_cpu
from harness.operators.base import OperatorSpec, ShapePoint

NOTHING = "def run(*arrays, **attributes):\n    pass\n"
EMPTY_BATCHES = 31
TARGET_BATCH_S = 5e-3
LEAST_SLOTS, MOST_SLOTS, MOST_RING_BYTES = 4, 32, 512 << 20
ITEM_BYTES = {"float16": 2, "bfloat16": 2, "int64": 8}
CACHES = 3
"""A ring holds at least this many times the last-level cache, where ``MOST_SLOTS`` allows."""
HOT_BATCHES = 2
SHARED_SWITCHES = 2
"""Switches per request that the judge and the keeper cause themselves where everything shares one core."""


@dataclass
class ShapeRecord:
    """Microseconds per call of one shape: per side, one list per round; ``claims``: a process's own clock over ours."""

    rounds: dict[str, list[tuple[float, ...]]] = field(default_factory=lambda: defaultdict(list))
    hot: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cold: list[float] = field(default_factory=list)
    claims: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


@dataclass
class Record:
    """Everything a session measured."""

    shapes: dict[str, ShapeRecord] = field(default_factory=lambda: defaultdict(ShapeRecord))
    first_calls: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    disturbed: list[str] = field(default_factory=list)


class Session:
    """Rings and the clock for one stage of one evaluation. Close it."""

    def __init__(self, opener: Any, spec: OperatorSpec, points: tuple[ShapePoint, ...], *, dtype: str,
                 regimes: tuple[str, ...], seed: int, stage: Stage, cores: Cores, compile_request: dict[str, Any],
                 deadline_s: float, relative: float | None = None,
                 ensure_time: Callable[[], None] = lambda: None) -> None:
        """``relative`` is a goal's own tolerance; ``ensure_time`` raises once the evaluation's deadline has passed."""
        self._relative, self._ensure_time = relative, ensure_time
        self._opener, self._spec, self._points, self._stage = opener, spec, points, stage
        self._cores, self._compile, self._deadline_s = cores, compile_request, deadline_s
        self._random = random.Random(secrets.randbits(64))  # the order is not part of what a replay needs
        self.rings: dict[str, list[Lending]] = {}
        self.footprints: dict[str, int] = {}
        self._renewals: dict[str, judge_ring.Renewal] = {}
        self._stack = contextlib.ExitStack()
        try:
            self._stack.enter_context(_judge_on(cores))
            for point in points:
                self._make_ring(point, dtype, regimes, seed)
            self._overhead_s = self._measure_overhead()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give rings and cores back."""
        for ring in self.rings.values():
            for lending in ring:
                lending.close()
        self.rings.clear()
        self._stack.close()

    @property
    def overhead_us(self) -> float:
        """The judge's own cost per request, microseconds."""
        return self._overhead_s * 1e6

    def _make_ring(self, point: ShapePoint, dtype: str, regimes: tuple[str, ...], seed: int) -> None:
        slot_bytes = bytes_lent(self._spec, point, dtype)
        slots = ring_slots(slot_bytes, detect_cpu().last_level_bytes)
        ring = judge_ring.fresh_inputs(self._spec, point, dtype, regimes, seed, slots, self._stage, point.label)
        self.rings[point.label] = ring
        self._renewals[point.label] = judge_ring.Renewal(ring, seed, self._stage, point.label)
        self.footprints[point.label] = slots * slot_bytes

    def _measure_overhead(self) -> float:
        sides = open_sides(self._opener, {"nothing": NOTHING}, self._compile, self._cores, self._deadline_s)
        try:
            ring = next(iter(self.rings.values()))
            sides["nothing"].lend(ring)
            return median([sides["nothing"].batch(ring, ())[0] for _ in range(EMPTY_BATCHES)])
        finally:
            close_sides(sides)

    def round(self, sources: Mapping[str, str], record: Record, sweeps: int) -> None:
        """One process round of all sides over all shapes, ``sweeps`` paired samples each; added to ``record``.

        A round in which the host stole time or others used the clock's cores is still added, and named in
        ``record.disturbed``; ``quiet_round`` repeats it instead.

        Raises:
            CandidateFault, Refused: the candidate failed, or a timed call of it left a wrong result.
        """
        sides = open_sides(self._opener, sources, self._compile, self._cores, self._deadline_s)
        try:
            for name, side in sides.items():
                record.first_calls[name].append(side.first_call_s * 1e6)
            for point in self._points:
                self._shape(point, sides, record.shapes[point.label], sweeps, record.disturbed)
        finally:
            close_sides(sides)

    def quiet_round(self, sources: Mapping[str, str], record: Record, sweeps: int, repeats: int) -> int:
        """A round, measured again up to ``repeats`` times while it was disturbed; how many repeats were spent."""
        for spent in range(repeats + 1):
            attempt = Record()
            self.round(sources, attempt, sweeps)
            if spent == repeats or not attempt.disturbed:
                _merge(record, attempt)
                return spent
        return repeats

    def _shape(self, point: ShapePoint, sides: dict[str, Side], record: ShapeRecord, sweeps: int,
               disturbed: list[str]) -> None:
        ring = self.rings[point.label]
        estimates = []
        for side in sides.values():
            with _named(side):
                side.lend(ring)
                side.batch(ring, [0])
                estimates.append(self._per_call(side, ring, [1 % len(ring), 2 % len(ring)])[0])
        calls = min(max(TARGET_BATCH_S / max(*estimates, 1e-6), 1.0), len(ring))
        verified = self._random.randrange(sweeps)
        before, requests = telemetry.read(self._cores.timing), sweeps * len(sides)
        switches = -sum(side.worker.switches for side in sides.values())
        samples: dict[str, list[float]] = {name: [] for name in sides}
        for sweep in range(sweeps):
            self._ensure_time()
            slots = self._random.sample(range(len(ring)), draw_calls(self._random, calls, len(ring)))
            self._renewals[point.label].renew([ring[slot] for slot in slots])
            taken = judge_ring.Samples([ring[slot] for slot in slots])
            for name in self._random.sample(list(sides), len(sides)):
                with _named(sides[name]):
                    seconds, claim = self._per_call(sides[name], ring, slots)
                taken.take(name)
                samples[name].append(seconds * 1e6)
                if claim is not None:
                    record.claims[name].append(claim / seconds)
                if name == CANDIDATE and sweep == verified:
                    self._verify(ring[self._random.choice(slots)], point)
            other = next((name for name in sides if name != CANDIDATE), None)
            if CANDIDATE in sides and other is not None and taken.wrong(CANDIDATE, other, self._relative):
                raise self._caught(point)
        switches += sum(side.worker.switches for side in sides.values())
        if set(self._cores.timing) & set(self._cores.rest):
            switches = max(0, switches - SHARED_SWITCHES * requests)
        after = telemetry.read(self._cores.timing)
        seen = telemetry.between(before, after, self._cores.threads, switches, requests)
        if seen.disturbed:
            disturbed.append(seen.text)
        for name, values in samples.items():
            record.rounds[name].append(tuple(values))
        self._hot_and_cold(sides, ring, self._renewals[point.label], record, max(1, round(calls)))

    def _hot_and_cold(self, sides: dict[str, Side], ring: list[Lending], renewal: judge_ring.Renewal,
                      record: ShapeRecord, calls: int) -> None:
        for name in self._random.sample(list(sides), len(sides)):
            with _named(sides[name]):
                slot = self._random.randrange(len(ring))
                for _ in range(HOT_BATCHES):
                    record.hot[name].append(self._per_call(sides[name], ring, [slot] * calls)[0] * 1e6)
        if CANDIDATE in sides:
            slot = self._random.randrange(len(ring))
            renewal.renew([ring[slot]])
            sides[CANDIDATE].flush()
            record.cold.append(self._per_call(sides[CANDIDATE], ring, [slot])[0] * 1e6)

    def _per_call(self, side: Side, ring: list[Lending], slots: list[int]) -> tuple[float, float | None]:
        """Seconds per call by the judge's clock, and by the worker's own."""
        seconds, claimed = side.batch(ring, slots)
        net = max(seconds - self._overhead_s, 1e-9)
        return net / len(slots), None if claimed is None else claimed / len(slots)

    def _verify(self, lending: Lending, point: ShapePoint) -> None:
        """Refuse a candidate whose timed call left a wrong result in its slot."""
        reasons = judge_ring.verify_outputs(lending, self._stage, point.label, self._relative)
        broken = lending.broken_guards(self._stage, point.label)
        if broken:
            raise Refused(broken[0][0], *[reason for _, reason in broken])
        if reasons:
            raise self._caught(point, *reasons)

    def _caught(self, point: ShapePoint, *reasons: Reason) -> Refused:
        text = (f"A timed call on {point.label} left a wrong result, although the kernel passed the correctness "
                "stage: it does not do the same work when it is timed.")
        return Refused(Outcome.REWARD_HACK, Reason("timed_output_wrong", self._stage, text, case=point.label), *reasons)


def ring_slots(slot_bytes: int, last_level_bytes: int) -> int:
    """Slots of a ring: enough to leave the caches, at least four, within bounds of number and memory."""
    wanted = -(-CACHES * last_level_bytes // slot_bytes)
    most = max(1, min(MOST_SLOTS, MOST_RING_BYTES // slot_bytes))
    return max(min(wanted, most), min(LEAST_SLOTS, most))


def draw_calls(source: random.Random, mean: float, most: int) -> int:
    """A call count around ``mean``, between 1 and ``most``, that nobody knows beforehand."""
    low, high = max(1, round(0.75 * mean)), min(most, max(round(1.25 * mean), 2))
    return source.randint(min(low, high), high)


def _merge(into: Record, other: Record) -> None:
    into.disturbed += other.disturbed[:1]
    for name, values in other.first_calls.items():
        into.first_calls[name] += values
    for label, shape in other.shapes.items():
        target = into.shapes[label]
        for name, rounds in shape.rounds.items():
            target.rounds[name] += rounds
        for name, hot in shape.hot.items():
            target.hot[name] += hot
        target.cold += shape.cold
        for name, claims in shape.claims.items():
            target.claims[name] += claims


@contextlib.contextmanager
def _named(side: Side) -> Iterator[None]:
    """A fault of another side is never charged to the candidate."""
    try:
        yield
    except CandidateFault as fault:
        if side.name == CANDIDATE:
            raise
        raise opponent_failed(side.name, fault) from fault


@contextlib.contextmanager
def _judge_on(cores: Cores) -> Iterator[None]:
    """Keep the judge off the clock's cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores.rest)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def bytes_lent(spec: OperatorSpec, point: ShapePoint, dtype: str) -> int:
    """Bytes of all arrays of one call."""
    return sum(
        ITEM_BYTES.get(argument.dtype or dtype, 4) * math.prod(point.dims[dim] for dim in argument.dims)
        for argument in spec.arguments
    )
