"""Times groups of configurations on the device: few samples each, side by side in random order, the starting kernel
among them in every sweep.

The same launcher rounds as an evaluation's (fresh contents, poisoned outputs and scratch, cold caches), but nothing is
verified here: what wins is judged by the evaluator afterwards. The device is held for a group and no longer.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from harness.backends.triton.launcher.client import Device, DeviceFault, PlanRefused
from harness.evaluation.judge.bases import Bases, make_base
from harness.evaluation.timing.device.contents import Factors
from harness.evaluation.timing.device.shape import Shape, prepare
from harness.evaluation.timing.statistics import median
from harness.hardware import exclusive
from harness.search.configs import Built, Config, Space

START = "start"
ROUND_S = 60.0
LOCK_S = 600.0
ESTIMATE_PAIRS = 3
MOST_LOADED = 2000
"""Plans that one launcher holds: its modules stay until it ends."""


@dataclass
class Timed:
    """Samples of one configuration by shape, microseconds per call, and those of the starting kernel in the same
    sweeps; ``fault`` where the device failed instead."""

    us: dict[str, tuple[float, ...]] = field(default_factory=dict)
    start_us: dict[str, tuple[float, ...]] = field(default_factory=dict)
    fault: str = ""


class Clock:
    """The device side of a search. Close it."""

    def __init__(self, space: Space, hardware: str, open_device: Callable[[], Any], *, seed: int,
                 lock: Callable[..., Any] = exclusive.device) -> None:
        """``open_device`` starts a launcher; ``seed`` draws contents and orders."""
        self._space, self._hardware, self._open, self._lock = space, hardware, open_device, lock
        self._random = random.Random(seed)
        self._seed = seed
        self._device: Device | None = None
        self._handles: dict[tuple[Config, str], int] = {}
        self._shapes: dict[str, Shape] = {}
        self._factors: Factors | None = None
        self.held_s = 0.0
        """Seconds that the device was held."""

    def prepare(self) -> None:
        """Make the contents of all shapes, several at a time; needs no device."""
        points = tuple(point for members in self._space.buckets.values() for point in members)
        spec, dtype, workload = self._space.spec, self._space.dtype, self._space.workload
        with ThreadPoolExecutor(max(1, len(points))) as pool:
            bases = Bases({point.label: pool.submit(make_base, spec, point, dtype, workload.regimes_of(point),
                                                    self._seed, "search") for point in points})
            self._shapes = prepare(spec, points, dtype=dtype, regimes=workload.regimes, seed=self._seed,
                                   source=self._random, stage="search", bases=bases)
        self._factors = Factors(self._seed, "search")

    def time(self, group: Sequence[Built], start: Built, samples: int) -> dict[Config, Timed]:
        """``samples`` cold samples of every configuration in ``group`` (all of one bucket) for each shape of the
        bucket. ``start`` is the starting kernel in that bucket.

        Raises:
            InfrastructureError: the device was not free in time, or no launcher starts.
            DeviceFault: the starting kernel itself fails.
        """
        found = {one.config: Timed() for one in group}
        with self._lock(self._hardware, LOCK_S):
            began = time.monotonic()
            try:
                for point in self._space.buckets[start.config.bucket]:
                    running = [one for one in group if not found[one.config].fault]
                    self._shape(point.label, running, start, samples, found)
            finally:
                self.held_s += time.monotonic() - began
        return found

    def close(self) -> None:
        """End the launcher and give the contents back; idempotent."""
        self._end()
        for shape in self._shapes.values():
            shape.close()
        self._shapes = {}
        if self._factors is not None:
            self._factors.close()
            self._factors = None

    def _shape(self, label: str, group: Sequence[Built], start: Built, samples: int, found: dict[Config, Timed]
               ) -> None:
        """One round of one shape. Where it fails, halves of the group are asked by themselves, down to the one."""
        if not group:
            return
        try:
            self._settle(label, start)
            us = self._round(label, {START: start, **{str(n): one for n, one in enumerate(group)}}, samples)
        except (DeviceFault, PlanRefused) as fault:
            self._end()
            if len(group) == 1:
                self._settle(label, start)  # raises where it is the starting kernel that fails
                found[group[0].config].fault = f"{fault.code}: {fault.text}"
                return
            middle = len(group) // 2
            for half in (group[:middle], group[middle:]):
                self._shape(label, half, start, samples, found)
            return
        for number, one in enumerate(group):
            found[one.config].us[label] = us[str(number)]
            found[one.config].start_us[label] = us[START]

    def _settle(self, label: str, start: Built) -> None:
        """Choose the batch of a sample by the starting kernel's time, once."""
        shape = self._shapes[label]
        if shape.expected_us is None:
            shape.settle([median(self._round(label, {START: start}, ESTIMATE_PAIRS)[START])])

    def _round(self, label: str, sides: Mapping[str, Built], samples: int) -> Mapping[str, tuple[float, ...]]:
        device, shape = self._running(len(sides)), self._shapes[label]
        assert self._factors is not None
        handles = {name: self._loaded(device, one, label) for name, one in sides.items()}
        request = shape.round(self._factors, handles, samples, l2_bytes=device.info.l2_bytes,
                              memory_bytes=device.info.memory_bytes)
        cold = tuple(sweep for sweep in request.sweeps if sweep.flush)
        return device.round(replace(request, sweeps=cold), timeout_s=ROUND_S).us

    def _running(self, more: int) -> Device:
        if self._device is not None and len(self._handles) + more > MOST_LOADED:
            self._end()
        if self._device is None:
            self._device = self._open()
        return self._device

    def _loaded(self, device: Device, one: Built, label: str) -> int:
        key = (one.config, label)
        if key not in self._handles:
            self._handles[key] = device.load(*one.calls[label])
        return self._handles[key]

    def _end(self) -> None:
        self._handles.clear()
        if self._device is not None:
            with contextlib.suppress(OSError):
                self._device.close()
            self._device = None
