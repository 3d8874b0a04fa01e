"""Figures of one verdict: where the samples of candidate and opponent lie, shape by shape. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from apps.core.plotting import Figure, layout

LARGEST_TRACE = 400


@dataclass(frozen=True, slots=True)
class ShapeSides:
    """Times of one shape in microseconds, both sides of the same session."""

    shape: str
    other: tuple[float, ...]
    candidate: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Density:
    """Two outlines over one axis as SVG point lists, with the medians' places and the axis' ends (µs)."""

    other: str
    candidate: str
    other_x: float
    candidate_x: float
    low: float
    high: float


def thin(samples: Sequence[float], most: int = LARGEST_TRACE) -> list[float]:
    """At most ``most`` samples, evenly chosen from the sorted ones: quantiles keep their place."""
    ordered = sorted(samples)
    if len(ordered) <= most:
        return ordered
    step = (len(ordered) - 1) / (most - 1)
    return [ordered[round(place * step)] for place in range(most)]


def distribution(shapes: Sequence[ShapeSides], other_name: str) -> Figure:
    """Split violins per shape, in per cent of the opponent's median, opponent above and candidate below.

    The category axis runs downwards, and with it plotly's positive side.
    """
    data: list[Figure] = []
    for name, side, colour, pick in (
        (other_name, "negative", "--plot-incumbent", "other"),
        ("candidate", "positive", "--plot-candidate", "candidate"),
    ):
        for shape in shapes:
            samples: tuple[float, ...] = getattr(shape, pick)
            if not samples or not shape.other:
                continue
            middle = median(shape.other)
            values = [value / middle * 100 for value in thin(samples)]
            data.append(
                {
                    "type": "violin",
                    "orientation": "h",
                    "x": values,
                    "y": [shape.shape] * len(values),
                    "name": name,
                    "side": side,
                    "line": {"color": colour, "width": 1},
                    "fillcolor": colour,
                    "opacity": 0.55,
                    "points": False,
                    "meanline": {"visible": False},
                    "width": 1.6,
                    "scalemode": "width",
                    "hoverinfo": "skip",
                    "box": {"visible": True, "width": 0.08},
                }
            )
    x = {"title": {"text": f"time, % of the median of the {other_name}"}, "ticksuffix": " %"}
    y = {"type": "category", "autorange": "reversed", "showgrid": False}
    return {"data": data, "layout": layout(x, y, right=16, violingap=0, violinmode="overlay")}


def density(other: Sequence[float], candidate: Sequence[float], *, width: int = 220) -> Density | None:
    """Kernel density outlines of both sides on one axis, opponent above the line at y = 19, candidate below.

    The axis runs over the pooled 0.5 % to 99.5 % quantiles. Gaussian kernel, bandwidth by Silverman's
    rule (0.9 x min(sd, IQR / 1.34) x n^-1/5). ``None`` with fewer than two samples on a side.
    """
    if len(other) < 2 or len(candidate) < 2:
        return None
    pooled = sorted([*other, *candidate])
    low = pooled[int(0.005 * (len(pooled) - 1))]
    high = pooled[math.ceil(0.995 * (len(pooled) - 1))]
    if high <= low:
        low, high = low * 0.99, high * 1.01 or 1.0
    grid = [low + (high - low) * place / 80 for place in range(81)]

    def x_of(value: float) -> float:
        return 4 + (width - 8) * min(1.0, max(0.0, (value - low) / (high - low)))

    def outline(samples: Sequence[float], height: float) -> str:
        curve = smooth(thin(samples, 200), grid)
        top = max(curve) or 1.0
        points = [f"{x_of(at):.1f},{19 - height * level / top:.1f}" for at, level in zip(grid, curve, strict=True)]
        return " ".join([f"4,{19:.0f}", *points, f"{width - 4},{19:.0f}"])

    return Density(
        outline(other, 16),
        outline(candidate, -16),
        round(x_of(median(other)), 1),
        round(x_of(median(candidate)), 1),
        low,
        high,
    )


def smooth(samples: Sequence[float], grid: Sequence[float]) -> list[float]:
    """Unnormalised Gaussian density of ``samples`` on ``grid``."""
    count = len(samples)
    mean = sum(samples) / count
    deviation = math.sqrt(sum((value - mean) ** 2 for value in samples) / count)
    ordered = sorted(samples)
    quartiles = (ordered[(3 * count) // 4] - ordered[count // 4]) / 1.34
    spread = min(value for value in (deviation, quartiles) if value > 0) if max(deviation, quartiles) > 0 else 0.0
    width = 0.9 * spread * count**-0.2 or (grid[-1] - grid[0]) / 80
    return [sum(math.exp(-0.5 * ((at - value) / width) ** 2) for value in samples) for at in grid]
