"""Shape by shape: the medians behind a board's ratios, of its leaders beside the baseline and the libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apps.leaderboards.ranking import BoardRow

LEADERS = 3
LIBRARIES = 3


@dataclass(frozen=True, slots=True)
class Cell:
    """A median in microseconds; ``None``: not timed there. ``best``: no other column is faster."""

    median_us: float | None
    best: bool = False


@dataclass(frozen=True, slots=True)
class ShapeTable:
    """Columns with a head and a remark, rows with the shape, its weight and a cell per column."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, float, tuple[Cell, ...]], ...]


def shape_table(rows: Sequence[BoardRow], weights: Mapping[str, float]) -> ShapeTable | None:
    """The table of a board in the order of its rows; ``None`` where nothing is timed by shape."""
    chosen = [row for row in choose(rows) if any(shape in weights for shape, _ in row.medians_us)]
    if not chosen:
        return None
    times = [dict(row.medians_us) for row in chosen]
    lines = []
    for shape, weight in weights.items():
        found = [column.get(shape) for column in times]
        fastest = min((value for value in found if value is not None), default=None)
        lines.append((shape, weight, tuple(Cell(value, value is not None and value == fastest) for value in found)))
    return ShapeTable(tuple(head(row) for row in chosen), tuple(lines))


def choose(rows: Sequence[BoardRow]) -> list[BoardRow]:
    """The leaders, the reader's best, the baseline measured last, and the fastest libraries; never a row in doubt."""
    able = [row for row in rows if row.rank is not None]
    own = [row for row in able if row.own][:1]
    leaders = able[:LEADERS] + [row for row in own if row not in able[:LEADERS]]
    baselines = [row for row in rows if row.label == "baseline" and not row.library]
    baseline = sorted(baselines, key=lambda row: row.measured_at.timestamp() if row.measured_at else 0.0)[-1:]
    libraries = sorted((row for row in rows if row.library and row.ratio), key=lambda row: -(row.ratio or 0.0))
    return leaders + baseline + libraries[:LIBRARIES]


def head(row: BoardRow) -> tuple[str, str]:
    """A column's two lines."""
    if row.library:
        return row.team, row.label
    return (f"#{row.rank} {row.team}", row.label) if row.rank else ("baseline", row.team)
