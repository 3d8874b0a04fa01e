"""Correctness cases with where they came closest to their bound, and the matrix of regimes and layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import Any

from apps.kernels.screens.sheet import CaseRow, case_row

BINDING = {
    "honest": "scaled from the honest implementation’s own error",
    "rounding": "what sums in any order and the final rounding may add up to",
    "cap": "the ceiling for this dtype and operator",
    "override": "the goal’s own tolerance, which reviewers see",
}
MEASURED = "measured shape"
FIRST = ("normal", "mixed")


@dataclass(frozen=True, slots=True)
class BoundMark:
    """One value on the error scale: where (0 to 1, logarithmic) and what it is."""

    name: str
    value: float
    at: float
    binding: bool = False

    @property
    def x(self) -> float:
        """Its place on a line from 10 to 250."""
        return round(10 + 240 * self.at, 1)


@dataclass(frozen=True, slots=True)
class BoundRow:
    """The bound of a case, and how it came about. Shares and marks are relative to ``scale``."""

    output: str
    index: tuple[int, ...]
    error: float
    absolute: float
    relative: float
    scale: float
    honest: float
    rounding: float
    cap: float
    binding: str
    reason: str
    marks: tuple[BoundMark, ...]

    @property
    def binding_text(self) -> str:
        """Which bound applied, in words."""
        return BINDING.get(self.binding, self.binding)


@dataclass(frozen=True, slots=True)
class CaseDetail:
    """One case as the page shows it. ``against_baseline`` is its error over the honest one's; ``why`` says what the
    case is for; ``anchor`` is its address on the page."""

    row: CaseRow
    anchor: str
    layout: str
    why: str
    bound: BoundRow | None
    against_baseline: float | None

    @property
    def short(self) -> str:
        """Share of the bound for a narrow cell."""
        if self.row.share is None:
            return "ok" if self.row.passed else "–"
        return "0" if self.row.share == 0 else f"{min(self.row.share, 99.0):.2f}"


@dataclass(frozen=True, slots=True)
class Matrix:
    """Cases by dtype and layout (rows) and by regime (columns)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[CaseDetail, ...], ...]], ...]


def case_details(document: Mapping[str, Any], facts: Mapping[str, Mapping[str, Any]]) -> list[CaseDetail]:
    """Details of all cases that ran; ``facts`` are the operator's declarations by case name."""
    found = []
    for place, case in enumerate((document.get("correctness") or {}).get("cases", ()), 1):
        known = facts.get(case["name"], {})
        measured = case["name"].startswith("measured ")
        row = case_row(case)
        baseline = row.baseline_error
        found.append(CaseDetail(
            row, f"case-{place}", known.get("layout") or (MEASURED if measured else "contiguous"),
            known.get("reason") or ("the shape that is timed, with the contents that are timed" if measured else ""),
            bound_row(case.get("bound")),
            row.error / baseline if row.error is not None and baseline else None,
        ))
    return found


def bound_row(bound: Mapping[str, Any] | None) -> BoundRow | None:
    """The bound of a case with its marks; ``None`` in older documents and where no finite value was compared."""
    if not bound:
        return None
    values = {name: float(bound[name]) for name in ("honest", "rounding", "cap")}
    scale = float(bound["scale"])
    mine = float(bound["error"]) / scale if scale else 0.0
    return BoundRow(
        bound["output"], tuple(bound["index"]), float(bound["error"]), float(bound["absolute"]),
        float(bound["relative"]), scale, values["honest"], values["rounding"], values["cap"], bound["binding"],
        bound["reason"], _marks(mine, values, bound["binding"], float(bound["relative"])),
    )


def _marks(mine: float, values: Mapping[str, float], binding: str, applied: float) -> tuple[BoundMark, ...]:
    """Error and bounds on one logarithmic scale from the least of them to the largest."""
    named = {"error": mine, **values}
    if binding not in values:
        named[binding] = applied
    logs = [log10(value) for value in named.values() if value > 0]
    if not logs:
        return ()
    low, high = min(logs), max(logs)
    span = (high - low) or 1.0
    return tuple(BoundMark(name, value, round((log10(value) - low) / span, 4), name == binding)
                 for name, value in sorted(named.items(), key=lambda item: item[1]) if value > 0)


def matrix(details: Sequence[CaseDetail]) -> Matrix | None:
    """All cases by dtype and layout, and by regime; ``None`` where none ran."""
    if not details:
        return None
    places = tuple(dict.fromkeys((one.row.dtype, one.layout) for one in details))
    # What is timed has mixed contents: it stands beside the normal ones, not beyond the edge of a narrow window.
    found = dict.fromkeys(one.row.regime for one in details)
    regimes = (*(one for one in FIRST if one in found), *(one for one in found if one not in FIRST))
    rows = tuple(
        (f"{place[0]}, {place[1]}", tuple(
            tuple(one for one in details if one.row.regime == regime and (one.row.dtype, one.layout) == place)
            for regime in regimes))
        for place in places
    )
    return Matrix(regimes, rows)
