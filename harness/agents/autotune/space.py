"""What a search may try: the declared light tunables that a kernel's PARAMS hold, one point per shape bucket.

Pure. A *point* gives every axis one value. What was found for the buckets is put together as tables of PARAMS, which
is a light change like any other.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.agents.playbook import edit
from harness.domain.vocabulary import Backend, Tier
from harness.evaluation.arithmetic import check_feasibility, values_for
from harness.operators.base import OperatorSpec, ShapePoint, Tunable

POINTS_PER_KEY = 16
"""Ranges are cut to this many values per key, spread evenly (by factor for powers of two)."""
WHOLE = ""
"""Name of the one bucket of an operator that declares none."""

Point = tuple[tuple[str, Any], ...]
"""Values by key, in the order of the axes."""
Axes = Mapping[str, tuple[Any, ...]]


def axes_of(spec: OperatorSpec, backend: Backend, source: str) -> dict[str, tuple[Any, ...]]:
    """The values of every light tunable that the PARAMS of ``source`` hold."""
    present = edit.params(source)
    return {tunable.key: values_of(tunable) for tunable in spec.tunables
            if backend in tunable.backends and tunable.tier is Tier.LIGHT and tunable.key in present}


def values_of(tunable: Tunable) -> tuple[Any, ...]:
    """The grid of one key, at most ``POINTS_PER_KEY`` values in ascending order."""
    if tunable.choices:
        return tunable.choices
    if tunable.power_of_two:
        values = [1 << power for power in range(tunable.high.bit_length()) if tunable.low <= 1 << power <= tunable.high]
    else:
        values = list(range(tunable.low, tunable.high + 1))
    step = -(-len(values) // POINTS_PER_KEY)
    return tuple(values[::step])


def size_of(axes: Axes) -> int:
    """Number of points."""
    return math.prod(len(values) for values in axes.values()) if axes else 0


def grid(axes: Axes) -> Iterator[Point]:
    """Every point."""
    for values in itertools.product(*axes.values()):
        yield tuple(zip(axes, values, strict=True))


def sample(axes: Axes, count: int, start: Point, seed: int = 0) -> list[Point]:
    """``count`` different points, ``start`` first, the others drawn evenly from the whole grid; all of them where the
    grid has no more. Equal seeds give equal points."""
    size, sizes = size_of(axes), [len(values) for values in axes.values()]
    numbers = range(size) if count >= size else random.Random(seed).sample(range(size), min(size, count))
    points = [_numbered(axes, sizes, number) for number in numbers]
    others = [point for point in points if point != start]
    return [start, *others][:count] if size else []


def _numbered(axes: Axes, sizes: Sequence[int], number: int) -> Point:
    values = []
    for (key, known), size in zip(axes.items(), sizes, strict=True):
        number, place = divmod(number, size)
        values.append((key, known[place]))
    return tuple(values)


def buckets_of(spec: OperatorSpec, backend: Backend, workload: str) -> dict[str, tuple[ShapePoint, ...]]:
    """The measured shapes by bucket, in the operator's order; buckets that no shape falls into are left out."""
    points = spec.workloads[workload].shapes[backend]
    if spec.buckets is None:
        return {WHOLE: points}
    found = {name: tuple(point for point in points if bucket_of(spec, point) == name)
             for name, _ in spec.buckets.bounds}
    return {name: members for name, members in found.items() if members}


def bucket_of(spec: OperatorSpec, point: ShapePoint) -> str:
    """The bucket that a shape falls into."""
    if spec.buckets is None:
        return WHOLE
    size = point.dims.get(spec.buckets.dim, 0)
    return next(name for name, bound in spec.buckets.bounds if bound is None or size <= bound)


def point_of(spec: OperatorSpec, source: str, axes: Axes, shapes: Sequence[ShapePoint]) -> Point:
    """What the PARAMS of ``source`` say for the bucket of ``shapes``."""
    values = values_for(edit.params(source), shapes[0].dims, spec.buckets)
    return tuple((key, values[key]) for key in axes)


def infeasible(spec: OperatorSpec, backend: Backend, point: Point, shapes: Sequence[ShapePoint], hardware: str | None,
               dtype: str, fixed: Mapping[str, Any]) -> str:
    """Why arithmetic rules a point out for some shape of its bucket, with the sum; empty where it does not. ``fixed``
    are the kernel's other PARAMS."""
    for shape in shapes:
        found = check_feasibility(spec, backend, {**fixed, **dict(point)}, shape.dims, hardware, dtype=dtype)
        if not found.feasible:
            return found.text
    return ""


def together(spec: OperatorSpec, source: str, chosen: Mapping[str, Point]) -> str:
    """``source`` with the point of each bucket: a plain value where all agree, a table over every declared bucket where
    not. Buckets that nobody measured take what the nearest measured one has, the smaller of two as near."""
    if spec.buckets is None or len(chosen) == 1:
        return edit.set_params(source, dict(next(iter(chosen.values()))))
    names = [name for name, _ in spec.buckets.bounds]
    places = {names.index(name): dict(point) for name, point in chosen.items()}
    nearest = {name: places[min(places, key=lambda at: (abs(at - place), at))] for place, name in enumerate(names)}
    values: dict[str, Any] = {}
    for key in dict(next(iter(chosen.values()))):
        table = {name: point[key] for name, point in nearest.items()}
        first = next(iter(table.values()))
        values[key] = first if all(value == first for value in table.values()) else table
    return edit.set_params(source, values)


def distance(point: Point, start: Point, axes: Axes) -> int:
    """Steps along the axes between two points."""
    total = 0
    for (key, value), (_, origin) in zip(point, start, strict=True):
        values = axes[key]
        total += abs(values.index(value) - (values.index(origin) if origin in values else 0))
    return total
