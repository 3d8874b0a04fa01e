"""A search: built by CPU processes while the device times what is ready, halved rung by rung, best put together.

``halving``: every configuration gets two samples, the best quarter of a bucket more of them, and so on down to a few.
``exhaustive``: every configuration gets all samples at once. Scores are times over the starting kernel's in the same
sweeps, weighted over the shapes of a bucket. What a search finds is a claim: the evaluator judges the kernel.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.agents.autotune.halving import rungs, survivors
from harness.agents.autotune.space import Point
from harness.domain.errors import InfrastructureError
from harness.evaluation.timing.statistics import median
from harness.search.clock import Clock
from harness.search.configs import Built, Config, Space
from harness.search.farm import Farm
from harness.search.journal import Journal, Spent

SAMPLES = (2, 5, 12, 25)
"""Cold samples of a configuration in each rung."""
LEAST = 6
"""Configurations of a bucket that the last rung has at least."""
GROUP = 12
"""Configurations of one launcher round, besides the starting kernel."""

Told = Callable[[str, int, int, str], None]
"""Progress: what is done, how much of how much, words."""


@dataclass(frozen=True, slots=True)
class Found:
    """The best configuration of a bucket. ``ratio`` is how many times faster than the starting kernel it was in the
    last rung, by ``samples`` samples a shape; 1 where nothing was faster."""

    config: Config
    ratio: float
    samples: int
    rung: int


@dataclass(frozen=True, slots=True)
class Result:
    """What a search found. ``source`` is the kernel with the best configuration of every bucket, ``None`` where
    nothing was timed; ``rungs`` is how many configurations each one timed."""

    best: Mapping[str, Found]
    source: str | None
    points: int
    configurations: int
    timed: int
    problems: Mapping[str, int]
    rungs: tuple[int, ...]
    seconds: float
    device_s: float
    build_s: float

    @property
    def per_minute(self) -> float:
        """Configurations a minute, built or ruled out and, where possible, timed."""
        return 60.0 * self.configurations / self.seconds if self.seconds > 0 else 0.0


class Search:
    """One search over ``points`` for every bucket of ``space``. Without a clock it builds and times nothing."""

    def __init__(self, space: Space, points: Sequence[Point], farm: Farm, journal: Journal, clock: Clock | None = None,
                 *, strategy: str = "halving", seconds: float | None = None,
                 tell: Told = lambda what, done, of, text: None) -> None:
        """After ``seconds`` no further configuration is built; those that are there go through all rungs."""
        self._space, self._points, self._farm = space, list(points), farm
        self._journal, self._clock, self._tell = journal, clock, tell
        self._strategy, self._seconds = strategy, seconds
        self._until = math.inf
        self._built: dict[Config, Built] = {}
        self._starts: dict[str, Built] = {}
        self._sizes: list[int] = []
        self._began = 0.0

    def run(self) -> Result:
        """Search; the journal has every step.

        Raises:
            InfrastructureError: the starting kernel cannot be built or timed here, or nothing can.
        """
        began = self._began = time.monotonic()
        self._until = math.inf if self._seconds is None else began + self._seconds
        samples = SAMPLES if self._strategy == "halving" else (sum(SAMPLES),)
        if self._clock is None:
            self._build_all()
            found: dict[str, Found] = {}
        else:
            self._start_kernels()
            self._first_rung(samples[0])
            found = self._further_rungs(samples)
        total = self._journal.spent(self._spent(), over=True)
        return Result(
            found, self._space.best({name: one.config for name, one in found.items()}) if found else None,
            len(self._points), self._journal.configurations, len(self._journal.times(0)), self._journal.problems(),
            tuple(self._sizes), round(total.seconds, 2), round(total.device_s, 2), round(total.build_s, 2))

    def _spent(self) -> Spent:
        return Spent(time.monotonic() - self._began, self._clock.held_s if self._clock else 0.0, self._farm.busy_s)

    def _build_all(self) -> None:
        todo = [point for point in self._points
                if any(not self._journal.known(Config(bucket, point)) for bucket in self._space.buckets)]
        done = 0
        for batch in self._farm.build(todo, stop=self._late):
            for one in batch:
                self._journal.built(one)
            self._journal.spent(self._spent())
            done += len(batch)
            self._tell("build", done, len(todo) * len(self._space.buckets), "not timed")

    def _start_kernels(self) -> None:
        """The starting kernel in every bucket and the contents of the shapes, before anything else."""
        assert self._clock is not None
        maker = threading.Thread(target=self._clock.prepare)
        maker.start()
        starts = {bucket: self._space.start(bucket) for bucket in self._space.buckets}
        try:
            for batch in self._farm.build(list(dict.fromkeys(start.point for start in starts.values()))):
                for one in batch:
                    if one.config in starts.values():
                        self._starts[one.config.bucket] = one
        finally:
            maker.join()
        for bucket in starts:
            built = self._starts.get(bucket)
            if built is None or built.problem:
                text = built.text if built else "it was not built"
                raise InfrastructureError(f"The starting kernel itself cannot be timed for bucket '{bucket}': {text} "
                                          "Nothing was searched; give a kernel that fits the device.")

    def _first_rung(self, samples: int) -> None:
        """Time what gets ready while the rest is built."""
        todo = [point for point in self._points
                if any(not self._journal.known(Config(bucket, point)) for bucket in self._space.buckets)]
        waiting: dict[str, list[Built]] = {bucket: [] for bucket in self._space.buckets}
        total, done = len(self._points) * len(self._space.buckets), 0
        for batch in _ahead(lambda stop: self._farm.build(todo, stop=lambda: stop() or self._late())):
            for one in batch:
                self._journal.built(one)
                done += 1
                if one.problem or self._journal.known(one.config):
                    continue
                self._built[one.config] = one
                bucket = one.config.bucket
                waiting[bucket].append(one)
                if len(waiting[bucket]) == GROUP:
                    self._time(0, bucket, waiting[bucket], samples)
                    waiting[bucket] = []
            self._tell("first rung", done, total, f"{len(self._journal.times(0))} timed")
        for bucket, left in waiting.items():
            self._time(0, bucket, left, samples)

    def _late(self) -> bool:
        return time.monotonic() > self._until

    def _further_rungs(self, samples: Sequence[int]) -> dict[str, Found]:
        """Time the survivors again, rung by rung; the best of each bucket."""
        sizes = [0] * len(samples)
        found: dict[str, Found] = {}
        for bucket in self._space.buckets:
            scores = self._scores(0, bucket)
            if not scores:
                continue
            plan = rungs(len(scores), samples, LEAST)
            sizes[0] += len(scores)
            last = 0
            for rung, (_, number) in enumerate(plan[1:], 1):
                kept = survivors(scores, LEAST)
                self._rung(rung, bucket, kept, number)
                scores = self._scores(rung, bucket) or scores
                sizes[rung] += len(scores)
                last = rung
                self._tell(f"rung {rung + 1}", len(scores), len(kept), f"bucket '{bucket}'")
            found[bucket] = self._winner(bucket, scores, samples[last], last)
        self._sizes = sizes
        for bucket, one in found.items():
            self._journal.say("best", {"bucket": bucket, "params": one.config.params, "ratio": round(one.ratio, 4),
                                       "rung": one.rung, "samples": one.samples})
        return found

    def _winner(self, bucket: str, scores: Mapping[Point, float], samples: int, rung: int) -> Found:
        best = min(scores, key=lambda point: (scores[point], str(point)))
        if scores[best] >= 1.0:
            return Found(self._space.start(bucket), 1.0, samples, rung)
        return Found(Config(bucket, best), 1.0 / scores[best], samples, rung)

    def _rung(self, rung: int, bucket: str, points: Sequence[Point], samples: int) -> None:
        known = self._journal.times(rung)
        todo = [Config(bucket, point) for point in points]
        todo = [config for config in todo if config not in known and not self._journal.problem(config)]
        missing = [config.point for config in todo if config not in self._built]
        for batch in self._farm.build(missing, [bucket]) if missing else ():
            self._built |= {one.config: one for one in batch if not one.problem}
        ready = [self._built[config] for config in todo if config in self._built]
        for first in range(0, len(ready), GROUP):
            self._time(rung, bucket, ready[first : first + GROUP], samples)

    def _time(self, rung: int, bucket: str, group: Sequence[Built], samples: int) -> None:
        if not group:
            return
        assert self._clock is not None
        for config, timed in self._clock.time(group, self._starts[bucket], samples).items():
            if timed.fault:
                self._journal.failed(config, "device", timed.fault)
            else:
                self._journal.timed(rung, config, timed.us, timed.start_us)
        self._journal.spent(self._spent())

    def _scores(self, rung: int, bucket: str) -> dict[Point, float]:
        """Time over the starting kernel's, weighted over the bucket's shapes, of what this search's rung timed."""
        wanted = set(self._points)
        return {config.point: self._score(bucket, row) for config, row in self._journal.times(rung).items()
                if config.bucket == bucket and config.point in wanted and not self._journal.problem(config)}

    def _score(self, bucket: str, row: Mapping[str, Any]) -> float:
        shapes = self._space.buckets[bucket]
        weight = math.fsum(shape.weight for shape in shapes)
        logs = (shape.weight * math.log(median(_ratios(row["us"][shape.label], row["start_us"][shape.label])))
                for shape in shapes)
        return math.exp(math.fsum(logs) / weight)


def _ratios(us: Sequence[float], start: Sequence[float]) -> list[float]:
    return [mine / other for mine, other in zip(us, start, strict=True)]


def _ahead(build: Callable[[Callable[[], bool]], Any]) -> Any:
    """What ``build`` yields, from a thread of its own, so that building goes on while a batch is looked at."""
    ready: queue.Queue[Any] = queue.Queue()
    ended = threading.Event()

    def work() -> None:
        try:
            for batch in build(ended.is_set):
                ready.put(batch)
            ready.put(None)
        except BaseException as error:  # noqa: BLE001 - raised again where it is looked at
            ready.put(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while (batch := ready.get()) is not None:
            if isinstance(batch, BaseException):
                raise batch
            yield batch
    finally:
        ended.set()
        thread.join()
