"""Configurations of one kernel: a point for one shape bucket, and what building it gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.agents.autotune.space import (
    Axes,
    Point,
    axes_of,
    buckets_of,
    infeasible,
    point_of,
    sample,
    size_of,
    together,
)
from harness.agents.playbook import edit
from harness.domain.errors import UsageError
from harness.domain.vocabulary import Backend
from harness.operators.base import OperatorSpec, ShapePoint, Workload

if TYPE_CHECKING:
    from harness.evaluation.timing.device.session import Call


@dataclass(frozen=True, slots=True)
class Config:
    """One point for one bucket."""

    bucket: str
    point: Point

    @property
    def params(self) -> dict[str, Any]:
        """The point as PARAMS values."""
        return dict(self.point)


@dataclass(frozen=True, slots=True)
class Built:
    """A configuration after recording and compiling. ``problem`` is empty where it can be timed, else ``arithmetic``
    (ruled out before anything was compiled), ``resources`` (more than the device has), ``limits`` (more than the goal
    allows, spills for instance), ``recording`` or ``compiling``; ``text`` says what. ``calls`` by shape label."""

    config: Config
    problem: str = ""
    text: str = ""
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    occupancy: float | None = None
    calls: Mapping[str, Call] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Space:
    """What is searched: one operator's kernel, its axes, and the measured shapes by bucket."""

    spec: OperatorSpec
    workload: Workload
    source: str
    axes: Axes
    buckets: Mapping[str, tuple[ShapePoint, ...]]

    @property
    def dtype(self) -> str:
        """The workload's dtype."""
        return self.workload.dtypes[Backend.TRITON]

    def start(self, bucket: str) -> Config:
        """The starting kernel's own point."""
        return Config(bucket, point_of(self.spec, self.source, self.axes, self.buckets[bucket]))

    @property
    def size(self) -> int:
        """Points of the whole grid."""
        return size_of(self.axes)

    def text_of(self, point: Point) -> str:
        """The kernel with one point in every bucket."""
        return together(self.spec, self.source, dict.fromkeys(self.buckets, point))

    def best(self, chosen: Mapping[str, Config]) -> str:
        """The kernel with the configuration of every bucket."""
        return together(self.spec, self.source, {name: config.point for name, config in chosen.items()})

    def drawn(self, count: int | None, seed: int) -> list[Point]:
        """``count`` points for every bucket, their starts first; the whole grid for ``None``."""
        starts = list(dict.fromkeys(self.start(bucket).point for bucket in self.buckets))
        points = sample(self.axes, self.size if count is None else count, starts[0], seed)
        return list(dict.fromkeys([*starts, *points]))[: max(len(points), len(starts))]

    def ruled_out(self, config: Config, hardware: str) -> str:
        """Why arithmetic rules it out, empty where it does not."""
        return infeasible(self.spec, Backend.TRITON, config.point, self.buckets[config.bucket], hardware, self.dtype,
                          edit.params(self.source))


def space_of(spec: OperatorSpec, workload: str, source: str, labels: Sequence[str] = ()) -> Space:
    """The space of ``source``; ``labels`` narrows the measured shapes.

    Raises:
        UsageError: no such workload or shape, or nothing to search.
    """
    if workload not in spec.workloads:
        raise UsageError(f"{spec.name} has no workload '{workload}'. Known: {', '.join(spec.workloads)}.")
    buckets = buckets_of(spec, Backend.TRITON, workload)
    known = [point.label for members in buckets.values() for point in members]
    for label in labels:
        if label not in known:
            raise UsageError(f"{spec.name} measures no shape '{label}'. Known: {', '.join(known)}.")
    if labels:
        narrowed = {name: tuple(p for p in members if p.label in labels) for name, members in buckets.items()}
        buckets = {name: members for name, members in narrowed.items() if members}
    axes = axes_of(spec, Backend.TRITON, source)
    if not axes:
        raise UsageError(f"PARAMS of this kernel hold none of the tunables that {spec.name} declares, so there is "
                         "nothing to search.")
    return Space(spec, spec.workloads[workload], source, axes, buckets)
