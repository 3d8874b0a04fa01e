"""The orders in which one bucket's points are tried. Pure functions of what was measured so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.agents.autotune.space import Axes, Point, distance, grid

KEPT = 4
"""A rung of successive halving keeps one point in so many."""


def exhaustive(axes: Axes, start: Point) -> Iterator[Point]:
    """Every point, those nearest to the starting values first."""
    yield from sorted(grid(axes), key=lambda point: (distance(point, start, axes), str(point)))


def coarse_to_fine(axes: Axes, start: Point, gains: Mapping[Point, float]) -> Iterator[Point]:
    """Single-key changes by ever smaller strides around the start and the better half of the measured points, best
    first. ``gains`` are measured ratios over the start; a point that nobody measured counts as 1."""
    ranked = sorted(gains, key=lambda point: (-gains[point], str(point)))
    centres = list(dict.fromkeys([*ranked[: -(-len(ranked) // 2)], start]))
    centres.sort(key=lambda point: -gains.get(point, 1.0))
    stride = max((len(values) for values in axes.values()), default=1) // 2
    while stride >= 1:
        for centre in centres:
            yield from _neighbours(centre, axes, stride)
        stride //= 2


def survivors(scores: Mapping[Point, float], least: int) -> list[Point]:
    """The best quarter of a rung, at least ``least`` points, best first; a score is a time, lower is better."""
    ranked = sorted(scores, key=lambda point: (scores[point], str(point)))
    return ranked[: max(least, -(-len(ranked) // KEPT))]


def rungs(points: int, samples: Sequence[int], least: int) -> list[tuple[int, int]]:
    """(points, samples of each) of every rung for a budget of samples per rung; stops where nothing is left to halve.
    """
    found = []
    for number in samples:
        found.append((points, number))
        if points <= least:
            break
        points = max(least, -(-points // KEPT))
    return found


def _neighbours(centre: Point, axes: Axes, stride: int) -> Iterator[Point]:
    for key, values in axes.items():
        here = dict(centre)[key]
        if here not in values:
            continue
        at = values.index(here)
        for other in (at + stride, at - stride):
            if 0 <= other < len(values):
                yield tuple((name, values[other] if name == key else value) for name, value in centre)
