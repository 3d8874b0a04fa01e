"""The canary's plot: what each reading took of the reference, with its margin, and times of drift. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, floor, log

from apps.campaigns.canary.selectors import Window

WIDTH, HEIGHT = 720, 190
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 12, 34
MOST_TICKS = 5
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Point:
    """One reading: its ratio to the reference (``None`` where the baseline was refused) and its margin."""

    at: datetime
    ratio: float | None
    margin: float
    side: int
    label: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A reading on the plot; ``low`` and ``high`` are the ends of its margin around 1."""

    x: float
    y: float
    low: float
    high: float
    css: str
    label: str


@dataclass(frozen=True, slots=True)
class Shade:
    """A time of drift."""

    x: float
    width: float


@dataclass(frozen=True, slots=True)
class CanaryPlot:
    """Everything in the units of the view box."""

    dots: tuple[Dot, ...]
    line: str
    shades: tuple[Shade, ...]
    one_y: float
    ticks: tuple[tuple[float, str], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM
    top: int = TOP

    @property
    def shade_height(self) -> int:
        """From top to the axis."""
        return self.bottom - self.top

    @property
    def text_y(self) -> int:
        """Where the axis' words stand."""
        return self.bottom + 18


def canary_plot(points: Sequence[Point], windows: Sequence[Window]) -> CanaryPlot | None:
    """Readings in order, one step each: what matters is the order, and nights would squeeze the rest together.

    ``None`` without a reading that has a ratio.
    """
    known = [point.ratio for point in points if point.ratio is not None]
    if not known:
        return None
    widest = max(point.margin for point in points)
    low = min([*known, 1 / (1 + 1.3 * widest)])
    high = max([*known, 1 + 1.3 * widest])
    span = (log(high) - log(low)) or 1.0
    step = (WIDTH - LEFT - RIGHT) / max(len(points), 2)

    def y_of(ratio: float) -> float:
        inside = min(max(ratio, low), high)
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (log(inside) - log(low)) / span, 1)

    def x_of(place: float) -> float:
        return round(LEFT + step * (place + 0.5), 1)

    dots = tuple(
        Dot(x_of(place), y_of(point.ratio) if point.ratio is not None else float(TOP), y_of(1 / (1 + point.margin)),
            y_of(1 + point.margin), "dot" if point.side == 0 else "rej", point.label)
        for place, point in enumerate(points))
    line = "M" + "L".join(f"{dot.x} {dot.y}" for dot, point in zip(dots, points, strict=True)
                          if point.ratio is not None)
    return CanaryPlot(dots, line, _shades(points, windows, step), y_of(1.0), _ticks(low, high, y_of))


def _shades(points: Sequence[Point], windows: Sequence[Window], step: float) -> tuple[Shade, ...]:
    shades = []
    for window in windows:
        inside = [place for place, point in enumerate(points) if window.holds(point.at)]
        if inside:
            start = LEFT + step * inside[0]
            shades.append(Shade(round(start, 1), round(step * (inside[-1] - inside[0] + 1), 1)))
    return tuple(shades)


def _ticks(low: float, high: float, y_of: Callable[[float], float]) -> tuple[tuple[float, str], ...]:
    step = next((step for step in STEPS if (high - low) / step <= MOST_TICKS), (high - low) / MOST_TICKS)
    return tuple((y_of(number * step), f"{number * step:.2f}×")
                 for number in range(ceil(low / step), floor(high / step) + 1))
