"""The figure of a leaderboard: every row's speed-up over the baseline as a dot with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.core import figures
from apps.core.plotting import Figure, layout


@dataclass(frozen=True, slots=True)
class BoardDot:
    """One row: ``kind`` is ``champion``, ``own`` (of the reader's team), ``library`` or ``unranked``."""

    label: str
    ratio: float
    low: float | None
    high: float | None
    kind: str
    in_doubt: bool = False  # measured while the device drifted


COLOURS = {
    "champion": "--plot-incumbent",
    "own": "--plot-candidate",
    "library": "--plot-library",
    "unranked": "--plot-rejected",
}
SYMBOLS = {"champion": "circle", "own": "circle", "library": "diamond-open", "unranked": "x-thin-open"}


def dots(rows: Sequence[BoardDot], title: str) -> Figure:
    """Horizontal dots, best on top, intervals as bars; the line at 1 is what the ratio compares with. Rows in doubt are
    shaded."""
    data = []
    for kind in COLOURS:
        chosen = [row for row in rows if row.kind == kind]
        if not chosen:
            continue
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [row.ratio for row in chosen],
                "y": [row.label for row in chosen],
                "marker": {
                    "color": COLOURS[kind],
                    "symbol": SYMBOLS[kind],
                    "size": 9,
                    "line": {"width": 1.6, "color": COLOURS[kind]},
                },
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "thickness": 1.4,
                    "width": 4,
                    "color": COLOURS[kind],
                    "array": [(row.high - row.ratio) if row.high is not None else 0 for row in chosen],
                    "arrayminus": [(row.ratio - row.low) if row.low is not None else 0 for row in chosen],
                },
                "text": [
                    f"{row.label}: {figures.ratio(row.ratio)} {figures.interval(row.low, row.high)}" for row in chosen
                ],
                "hovertemplate": "%{text}<extra></extra>",
            }
        )
    shape = {
        "type": "line",
        "xref": "x",
        "x0": 1,
        "x1": 1,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": "--line-strong", "width": 1, "dash": "dot"},
    }
    order = [row.label for row in rows]
    return {
        "data": data,
        "layout": layout(
            {"title": {"text": title}, "ticksuffix": "×"},
            {"type": "category", "categoryorder": "array", "categoryarray": order[::-1], "showgrid": True},
            right=24,
            shapes=[shape, *(shade(len(rows) - 1 - place) for place, row in enumerate(rows) if row.in_doubt)],
        ),
    }


def shade(place: int) -> Figure:
    """The shade over a row, counted from the bottom."""
    return {
        "type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": place - 0.5, "y1": place + 0.5,
        "fillcolor": "--stale-bg", "line": {"width": 0}, "layer": "below",
    }
