"""One timing session: rings of fresh inputs, process rounds, paired samples. The judge's clock alone is believed.

A sample is (T - c) / n: T the judge's seconds around a request for n calls, n drawn at random, each call on its own
ring slot, whose contents are new in every sweep; c the seconds of an empty request to a trusted process, so that the
figure is the slope of time over calls through an intercept that the candidate cannot forge. In a sweep every side gets
the same slots, in a random order, and their outputs are compared. Whoever comes later finds the inputs in a shared
cache (worth one to three percent, measured on two cores); so orders are balanced over the sweeps of a round.

The figure of a shape includes everything that the host does for a call: ``run`` in Python, its scratch, the launch of
the compiled function. A hot sample differs in one thing only: its slots fit the last-level cache, and the judge renews,
poisons and reads them on the clock's own core right before, so that the caches are warm and the contents are new. For a
cold one the judge sweeps the caches of that core. The candidate is frozen while either happens. Only ``repeated``
samples show a process contents that it met before; they are no figure, a gain there is a lead.

In every round one shape, all of them by turns, also gets a few calls that are no sample, at a time that nobody knows
beforehand, one of them on rows of special values: a kernel that tells the clock's process from the judge's has to be
right there, too. The oracle judges that slot whole, elsewhere one of a timed call.
"""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.judge import ring as judge_ring
from harness.evaluation.judge.oracle import InvalidReference
from harness.evaluation.ports import CandidateFault
from harness.evaluation.run import Refused
from harness.evaluation.timing.pulse import on_cores
from harness.evaluation.timing.record import Record, ShapeRecord
from harness.evaluation.timing.rings import Ring
from harness.evaluation.timing.sides import CANDIDATE, Side, close_sides, open_sides, opponent_failed
from harness.evaluation.timing.statistics import median
from harness.evaluation.timing.sweeper import Sweeper
from harness.evaluation.timing.watch import Watch
from harness.hardware.cores import Cores
from harness.hardware.detect import detect_cpu
from harness.operators.base import ShapePoint

NOTHING = "def run(*arrays, **attributes):\n    pass\n"
EMPTY_BATCHES = 31
TARGET_BATCH_S = 5e-3
HOT_BATCHES = 2


class Session:
    """The clock for one stage of one evaluation. Close it."""

    def __init__(self, opener: Any, points: tuple[ShapePoint, ...], rings: Mapping[str, Ring], *, stage: Stage,
                 cores: Cores, compile_request: dict[str, Any], deadline_s: float, relative: float | None = None,
                 ensure_time: Callable[[], None] = lambda: None) -> None:
        """``rings`` stay the caller's. ``relative`` is a goal's own tolerance; ``ensure_time`` raises once the
        evaluation's deadline has passed."""
        self._relative, self._ensure_time = relative, ensure_time
        self._opener, self._points, self._stage, self.rings = opener, points, stage, rings
        self._cores, self._compile, self._deadline_s = cores, compile_request, deadline_s
        self._random = random.Random(secrets.randbits(64))  # the order is not part of what a replay needs
        self._turn = self._random.randrange(len(points))
        self._stack = contextlib.ExitStack()
        try:
            self._stack.enter_context(on_cores(cores.rest))
            self._overhead_s = self._measure_overhead()
            self._watch, self._sweeper = Watch(cores), Sweeper(detect_cpu().last_level_bytes)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the cores back."""
        self._stack.close()

    @property
    def overhead_us(self) -> float:
        """The judge's own cost per request, microseconds."""
        return self._overhead_s * 1e6

    def _measure_overhead(self) -> float:
        sides = open_sides(self._opener, {"nothing": NOTHING}, self._compile, self._cores, self._deadline_s)
        try:
            ring = next(iter(self.rings.values())).slots
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
            self._turn = (self._turn + 1) % len(self._points)
            for place, point in enumerate(self._points):
                self._shape(point, sides, record, sweeps, special=place == self._turn)
        finally:
            close_sides(sides)

    def quiet_round(self, sources: Mapping[str, str], record: Record, sweeps: int, repeats: int) -> int:
        """A round, measured again up to ``repeats`` times while it was disturbed; how many repeats were spent."""
        for spent in range(repeats + 1):
            attempt = Record()
            self.round(sources, attempt, sweeps)
            if spent == repeats or not attempt.disturbed:
                record.add(attempt)
                return spent
        return repeats

    def _shape(self, point: ShapePoint, sides: dict[str, Side], whole: Record, sweeps: int, *, special: bool) -> None:
        ring, record = self.rings[point.label], whole.shapes[point.label]
        latest = {}
        for name, side in sides.items():
            with _named(side):
                side.lend(ring.slots)
                side.batch(ring.slots, [0])
                latest[name] = self._per_call(side, ring, [1 % len(ring), 2 % len(ring)])[0]
        special_at = self._random.randrange(sweeps) if special and CANDIDATE in sides else None
        whole_slot = special_at is None or len(self._points) == 1  # the oracle judges one slot of a shape and round
        verified = self._random.randrange(sweeps) if whole_slot else None
        samples: dict[str, list[float]] = {name: [] for name in sides}
        counts = []
        self._watch.begin(list(sides.values()))
        for sweep, order in enumerate(balanced_orders(self._random, list(sides), sweeps)):
            self._ensure_time()
            counts.append(draw_calls(self._random, mean_calls(latest.values(), len(ring)), len(ring)))
            slots = self._random.sample(range(len(ring)), counts[-1])
            ring.renew(slots)
            taken, left = judge_ring.Samples(ring.chosen(slots)), None
            for name in order:
                with _named(sides[name]):
                    latest[name], claim = self._per_call(sides[name], ring, slots)
                taken.take(name)
                samples[name].append(latest[name] * 1e6)
                if claim is not None:
                    record.claims[name].append(claim / latest[name])
                if name == CANDIDATE and sweep == verified:
                    left = judge_ring.left_in(ring.slots[self._random.choice(slots)], self._stage, point.label)
            self._compare(taken, sides, point)
            if left is not None:
                self._verify(left, point)
            if sweep == special_at:
                self._special(point, sides[CANDIDATE], counts[-1])
        seen = self._watch.end(list(sides.values()), sweeps)
        record.calls.append(tuple(counts))
        record.speed.append(seen.all.speed)
        record.disturbed.append(seen.all.text if seen.all.disturbed else "")
        if seen.all.disturbed:
            whole.disturbed.append(seen.all.text)
        whole.noisy |= seen.outside.disturbed
        for name, values in samples.items():
            record.rounds[name].append(tuple(values))
        self._hot(point, sides, record, max(1, round(mean_calls(latest.values(), len(ring)))))
        self._cold(sides, ring, record)

    def _hot(self, point: ShapePoint, sides: dict[str, Side], record: ShapeRecord, calls: int) -> None:
        """Warm caches, new contents; then the very same contents again, which must bring nothing more."""
        ring = self.rings[point.label]
        for order in balanced_orders(self._random, list(sides), HOT_BATCHES):
            slots = self._random.sample(range(len(ring)), min(ring.hot, calls))
            with on_cores(self._cores.timing):
                ring.renew(slots)
            taken = judge_ring.Samples(ring.chosen(slots))
            for name in order:
                record.hot[name].append(self._warm(sides[name], ring, slots) * 1e6)
                taken.take(name)
            self._compare(taken, sides, point)
        for name in order:
            record.repeated[name].append(self._warm(sides[name], ring, slots) * 1e6)

    def _warm(self, side: Side, ring: Ring, slots: list[int]) -> float:
        """Seconds per call on slots that the judge has just handled on the clock's core."""
        with on_cores(self._cores.timing):
            for lending in ring.chosen(slots):
                lending.poison()
                lending.touch()
        with _named(side):
            return self._net(side.timed(slots)[0]) / len(slots)

    def _cold(self, sides: dict[str, Side], ring: Ring, record: ShapeRecord) -> None:
        """One call of the candidate on new contents that lie in no cache of the clock's core."""
        if CANDIDATE not in sides:
            return
        slot = self._random.randrange(len(ring))
        ring.renew([slot])
        ring.slots[slot].poison()
        with on_cores(self._cores.timing):
            self._sweeper.sweep()
        record.cold.append(self._net(sides[CANDIDATE].timed([slot])[0]) * 1e6)

    def _per_call(self, side: Side, ring: Ring, slots: list[int]) -> tuple[float, float | None]:
        """Seconds per call by the judge's clock, and by the worker's own."""
        seconds, claimed = side.batch(ring.slots, slots)
        return self._net(seconds) / len(slots), None if claimed is None else claimed / len(slots)

    def _net(self, seconds: float) -> float:
        """What is left of a request's time without the judge's own part."""
        return max(seconds - self._overhead_s, 1e-9)

    def _compare(self, taken: judge_ring.Samples, sides: Mapping[str, Side], point: ShapePoint) -> None:
        """Refuse a candidate whose timed outputs differ from another side's and are wrong."""
        other = next((name for name in sides if name != CANDIDATE), None)
        with self._oracle(point):
            wrong = CANDIDATE in sides and other is not None and taken.wrong(CANDIDATE, other, self._relative)
        if wrong:
            raise self._caught(point)

    def _special(self, point: ShapePoint, side: Side, calls: int) -> None:
        """Refuse a candidate that is wrong on special values in the process that is timed. ``calls`` untimed calls."""
        ring = self.rings[point.label]
        slots = self._random.sample(range(len(ring)), calls)
        ring.renew(slots)
        chosen = ring.slots[slots[-1]]
        if ring.renewal.special(chosen):
            with _named(side):
                side.batch(ring.slots, slots)
            self._verify(judge_ring.left_in(chosen, self._stage, point.label), point)
        ring.renew(slots[-1:])

    def _verify(self, left: judge_ring.Left, point: ShapePoint) -> None:
        """Refuse a candidate whose timed call left a wrong result in its slot."""
        with self._oracle(point):
            faults = left.faults(self._stage, point.label, self._relative)
        if left.broken:
            raise Refused(left.broken[0][0], *[reason for _, reason in left.broken])
        if faults:
            raise self._caught(point, *[reason for _, reason in faults])

    @contextlib.contextmanager
    def _oracle(self, point: ShapePoint) -> Iterator[None]:
        """A reference that fails is never the candidate's fault."""
        try:
            yield
        except InvalidReference as error:
            reason = Reason(error.code, self._stage, error.text, case=point.label)
            raise Refused(Outcome.INVALID_REFERENCE, reason) from error

    def _caught(self, point: ShapePoint, *reasons: Reason) -> Refused:
        text = (f"A timed call on {point.label} left a wrong result, although the kernel passed the correctness "
                "stage: it does not do the same work when it is timed.")
        return Refused(Outcome.REWARD_HACK, Reason("timed_output_wrong", self._stage, text, case=point.label), *reasons)


def mean_calls(latest: Iterable[float], slots: int) -> float:
    """Calls per sample for which the slowest side takes ``TARGET_BATCH_S``; between 1 and ``slots``.

    ``latest`` are the seconds per call of the samples just taken, so that a kernel which is slow only while it warms up
    changes the first sample at most.
    """
    return min(max(TARGET_BATCH_S / max(*latest, 1e-6), 1.0), slots)


def balanced_orders(source: random.Random, names: list[str], count: int) -> list[list[str]]:
    """Orders of all names for ``count`` sweeps, in a sequence that nobody knows beforehand.

    They come from the rotations of a random order, each with its reverse: for even counts everybody precedes everybody
    else in exactly half of them, and every ``2 * len(names)`` of them put everybody in every place equally often.
    """
    found: list[list[str]] = []
    while len(found) < count:
        first = source.sample(names, len(names))
        for turn in source.sample(range(len(names)), len(names)):
            rotated = first[turn:] + first[:turn]
            found += [rotated, rotated[::-1]]
    found = found[:count]
    source.shuffle(found)
    return found


def draw_calls(source: random.Random, mean: float, most: int) -> int:
    """A call count around ``mean``, between 1 and ``most``, that nobody knows beforehand."""
    low, high = max(1, round(0.75 * mean)), min(most, max(round(1.25 * mean), 2))
    return source.randint(min(low, high), high)


@contextlib.contextmanager
def _named(side: Side) -> Iterator[None]:
    """A fault of another side is never charged to the candidate."""
    try:
        yield
    except CandidateFault as fault:
        if side.name == CANDIDATE:
            raise
        raise opponent_failed(side.name, fault) from fault
