"""Where a refused candidate went wrong: case, place, numbers, and the pattern in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.kernels.screens.verdict.cases import CaseDetail

PATTERNS = {
    "tail_wrong": "the tail of every row: what is left over after the last full block",
    "row_wrong": "whole rows; the others are right",
    "tile_wrong": "whole blocks of a tile size; the others are right",
    "head_wrong": "whole heads; the others are right",
    "length_wrong": "sequences of some lengths; the others are right",
    "every_nth_wrong": "every n-th element, evenly spaced",
    "all_wrong": "everything, not a region",
    "numeric_wrong": "scattered elements without a pattern",
    "nan_wrong": "elements that are NaN, or should be",
    "inf_wrong": "elements that are infinite, or should be",
    "exact_wrong": "sums of small whole numbers that must be exact: an accumulator is too narrow",
    "relation_broken": "a relation that must hold between two runs",
    "nondeterministic": "elements that differ between equal runs",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """One reason of a refusal. ``times`` is the error as a multiple of the bound; ``code_line`` its line's text."""

    code: str
    stage: str
    text: str
    pattern: str
    case: CaseDetail | None
    case_name: str
    case_why: str
    index: str
    got: str
    expected: str
    error: float | None
    bound: float | None
    times: float | None
    line: int | None
    code_line: str

    @property
    def located(self) -> bool:
        """Whether it names an element."""
        return bool(self.index or self.got or self.expected)


def failures(document: Mapping[str, Any], details: Sequence[CaseDetail], source: str,
             facts: Mapping[str, Mapping[str, Any]]) -> list[Failure]:
    """The reasons of a verdict as the page shows them; empty where it passed. ``facts`` declare the cases by name."""
    lines = source.split("\n")
    by_name = {one.row.name: one for one in details}
    found = []
    for reason in document.get("reasons") or ():
        got, expected, bound, line = (reason.get(key) for key in ("got", "expected", "bound", "line"))
        error = abs(got - expected) if isinstance(got, float | int) and isinstance(expected, float | int) else None
        index = reason.get("index")
        found.append(Failure(
            reason["code"], reason["stage"], reason["text"], PATTERNS.get(reason["code"], ""),
            by_name.get(reason.get("case") or ""), reason.get("case") or "",
            facts.get(reason.get("case") or "", {}).get("reason", ""),
            f"[{', '.join(str(place) for place in index)}]" if index else "", _shown(got), _shown(expected), error,
            bound, error / bound if error is not None and bound else None, line,
            lines[line - 1].strip() if line and 0 < line <= len(lines) else "",
        ))
    return found


def _shown(value: object) -> str:
    """A value of a tensor: numbers with seven digits, anything else as it is written."""
    if value is None:
        return ""
    return f"{value:.7g}" if isinstance(value, float) else str(value)
