"""A small search: softmax on shapes of a few rows, built by nobody, timed by a model of a device."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness.agents.autotune.space import Point
from harness.domain.plan import LaunchPlan
from harness.domain.vocabulary import Backend
from harness.operators import registry
from harness.operators.base import ShapePoint
from harness.search.clock import Clock
from harness.search.configs import Built, Config, Space, space_of
from tests.harness.device_timing.device_model import Model, ModelDevice

BEST = {"medium": 4096, "long": 8192}
"""The fastest BLOCK of each bucket of the model; fewer warps are a little faster everywhere."""


def small_space() -> Space:
    """Two buckets of one and two shapes."""
    spec = registry.get("softmax")
    sizes = ((4, 4000, 0.5), (4, 5000, 0.3), (2, 6000, 0.2))
    shapes = tuple(ShapePoint(f"{rows}x{cols}", {"rows": rows, "cols": cols}, weight) for rows, cols, weight in sizes)
    workload = dataclasses.replace(spec.workloads["llm"], shapes={**spec.workloads["llm"].shapes,
                                                                  Backend.TRITON: shapes})
    narrowed = dataclasses.replace(spec, workloads={"llm": workload})
    return space_of(narrowed, "llm", spec.baseline(Backend.TRITON))


def name(config: Config) -> str:
    """How the model of the device knows a configuration."""
    return f"{config.bucket} {config.params['BLOCK']} {config.params['num_warps']}"


def us_of(config: Config) -> float:
    """Microseconds of the model."""
    steps = abs(config.params["BLOCK"].bit_length() - BEST[config.bucket].bit_length())
    return 20.0 * 1.3**steps * (1 + 0.02 * config.params["num_warps"].bit_length())


class FakeFarm:
    """Builds everything at once; ``broken`` configurations have a problem."""

    def __init__(self, space: Space, broken: Callable[[Config], bool] = lambda config: False) -> None:
        self.space, self.broken = space, broken
        self.busy_s, self.compiler = 0.0, "triton test"
        self.asked: list[tuple[Point, tuple[str, ...]]] = []

    def build(self, points: Sequence[Point], buckets: Sequence[str] | None = None,
              stop: Callable[[], bool] = lambda: False) -> Iterator[list[Built]]:
        for point in points:
            if stop():
                return
            wanted = tuple(buckets or self.space.buckets)
            self.asked.append((point, wanted))
            yield [self._one(Config(bucket, point)) for bucket in wanted]

    def _one(self, config: Config) -> Built:
        if self.broken(config):
            return Built(config, "limits", "it spills", registers=255, spill_bytes=64)
        plan = LaunchPlan("cuda:90", name(config), "same", (), ())
        return Built(config, registers=32, spill_bytes=0, shared_bytes=0, occupancy=1.0,
                     calls={shape.label: (plan, ()) for shape in self.space.buckets[config.bucket]})


def model_of(space: Space, **more: Any) -> Model:
    """Times of every configuration, known to the model by name."""
    us = {name(Config(bucket, point)): us_of(Config(bucket, point)) for bucket in space.buckets
          for point in space.drawn(None, 0)}
    return Model(us, sample_noise=0.005, round_noise=0.001, **more)


def clock_of(space: Space, model: Model, devices: list[ModelDevice] | None = None) -> Clock:
    """A clock whose launchers are models; ``devices`` collects them."""
    opened = devices if devices is not None else []

    def open_device() -> ModelDevice:
        opened.append(ModelDevice(space.spec, model, seed=len(opened) + 1))
        return opened[-1]

    return Clock(space, "nvidia-h200", open_device, seed=5, lock=lambda hardware, patience: contextlib.nullcontext())
