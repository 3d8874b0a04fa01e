"""The paired timing plot: log-ratios by round with medians and interval, the A/A control below, on one axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, floor, log, log10
from statistics import median
from typing import Any

from apps.kernels.screens.sheet import Versus

WIDTH, LEFT, RIGHT, TOP = 440, 58, 12, 30
ROW, LOW_ROW, FEW = 14, 9, 6
GAP, AXIS = 20, 30
MOST_POINTS = 32
"""Per round; of more, evenly chosen ones of the sorted are drawn, and the page says so."""
FAR = 20.0
MOST_TICKS = 7
STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class RoundMark:
    """One round: its label, the line it lies on, a path of points, and the place of its median."""

    label: str
    y: float
    points: str
    median_x: float
    median: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A place of the axis with its text."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class PairedPlot:
    """One shape. All lengths are in the units of its view box ``width`` x ``height``."""

    shape: str
    weight: float
    width: int
    height: float
    rounds: tuple[RoundMark, ...]
    control: tuple[RoundMark, ...]
    control_y: float
    one_x: float
    band_x: float
    band_width: float
    interval: tuple[float, float, float] | None
    versus: Versus | None
    ticks: tuple[Tick, ...]
    axis_y: float
    thinned: bool
    left: int = LEFT
    right: int = WIDTH - RIGHT

    @property
    def band_height(self) -> float:
        """The band ends at the axis."""
        return self.axis_y - 14

    @property
    def tick_y(self) -> float:
        """Where ticks end."""
        return self.axis_y + 4

    @property
    def text_y(self) -> float:
        """The baseline of the ticks' texts."""
        return self.axis_y + 17

    @property
    def control_median(self) -> float | None:
        """The median over rounds of the control's medians, as a ratio."""
        return median(mark.median for mark in self.control) if self.control else None


def paired_plots(samples: Mapping[str, Any] | None, role: str, margin: float,
                 versus: Mapping[str, Versus]) -> list[PairedPlot]:
    """A plot per shape, each on an axis of its own: pairs with ``role``, the control alone where nothing was compared;
    ``versus`` holds the verdict's ratios."""
    plots = []
    for shape in (samples or {}).get("shapes", ()):
        rounds = [_ratios(one) for one in (shape.get("versus") or {}).get(role) or ()]
        control = [_ratios(one) for one in shape.get("aa") or ()]
        if any(rounds) or any(control):
            plots.append(_plot(shape, rounds, control, margin, versus.get(shape["shape"])))
    return plots


def _ratios(one: Mapping[str, Sequence[float]]) -> list[float]:
    """Log-ratios of a round's pairs, other over candidate."""
    return [log(other / mine) for other, mine in zip(one["other"], one["candidate"], strict=False)
            if other > 0 and mine > 0]


def _plot(shape: Mapping[str, Any], rounds: list[list[float]], aa: list[list[float]], margin: float,
          versus: Versus | None) -> PairedPlot:
    low, high = _range([*rounds, *aa], margin, versus)
    row = ROW if len(rounds) <= FEW else LOW_ROW

    def x_of(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return round(LEFT + (WIDTH - LEFT - RIGHT) * share, 1)

    def marks(values: list[list[float]], top: float, word: str) -> tuple[RoundMark, ...]:
        return tuple(
            RoundMark(f"{word}{number}", round(top + row * (number - 0.5), 1),
                      "".join(f"M{x_of(value)} {top + row * (number - 0.5):.1f}h.01" for value in _thin(one)),
                      x_of(median(one)), exp(median(one)))
            for number, one in enumerate(values, 1) if one)

    control_top = TOP + row * len(rounds) + GAP
    axis_y = control_top + row * len(aa) + 4 if aa else TOP + row * len(rounds) + 4
    band = x_of(-log(1 + margin)), x_of(log(1 + margin))
    return PairedPlot(
        shape["shape"], shape["weight"], WIDTH, axis_y + AXIS, marks(rounds, TOP, "round "),
        marks(aa, control_top, "A/A "), control_top - 6, x_of(0.0), band[0], round(band[1] - band[0], 1),
        (x_of(log(versus.low)), x_of(log(versus.ratio)), x_of(log(versus.high))) if versus else None, versus,
        _ticks(low, high, x_of), axis_y, any(len(one) > MOST_POINTS for one in [*rounds, *aa]))


def _range(values: list[list[float]], margin: float, versus: Versus | None) -> tuple[float, float]:
    """Ends of the axis: the middle 96 % of all pairs, every median, the interval and the margin, with some room."""
    pooled = sorted(value for one in values for value in one)
    inner = [pooled[int(0.02 * (len(pooled) - 1))], pooled[ceil(0.98 * (len(pooled) - 1))]]
    inner += [median(one) for one in values if one]
    inner += [-1.6 * log(1 + margin), 1.6 * log(1 + margin)]
    if versus is not None:
        inner += [log(versus.low), log(versus.high)]
    room = 0.04 * (max(inner) - min(inner))
    return min(inner) - room, max(inner) + room


def _thin(values: list[float]) -> list[float]:
    ordered = sorted(values)
    if len(ordered) <= MOST_POINTS:
        return ordered
    step = (len(ordered) - 1) / (MOST_POINTS - 1)
    return [ordered[round(place * step)] for place in range(MOST_POINTS)]


def _ticks(low: float, high: float, x_of: Callable[[float], float]) -> tuple[Tick, ...]:
    """At most seven round ratios between the ends: even steps, or powers of ten where they lie far apart."""
    first, last = exp(low), exp(high)
    if last / first > FAR:
        decades = range(ceil(log10(first)), floor(log10(last)) + 1)
        every = ceil(len(decades) / MOST_TICKS) or 1
        return tuple(Tick(x_of(log(10.0) * place), f"{10.0**place:g}×") for place in decades[::every])
    step = next((step for step in STEPS if (last - first) / step <= MOST_TICKS - 1), (last - first) / MOST_TICKS)
    places = [step * number for number in range(ceil(first / step), floor(last / step) + 1)]
    digits = 0 if step >= 1 else len(f"{step:g}".partition(".")[2])
    return tuple(Tick(x_of(log(value)), f"{value:.{digits}f}×") for value in places if value > 0)
