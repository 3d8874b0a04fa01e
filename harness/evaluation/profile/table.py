"""Nsight Compute's report (``--csv --page raw``) as rows of numbers in base units. Pure."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

FACTORS = {
    "nsecond": 1e-3, "ns": 1e-3, "usecond": 1.0, "us": 1.0, "msecond": 1e3, "ms": 1e3, "second": 1e6, "s": 1e6,
    "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
}
"""By unit as the second line names it: times become microseconds, amounts bytes; all other units stay."""
NAME, GRID, BLOCK = "Kernel Name", "Grid Size", "Block Size"
ERROR = re.compile(r"^==ERROR==\s*(.*\S)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """One profiled launch: its function, blocks, threads per block, and every metric that has a number."""

    function: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    values: Mapping[str, float]

    @property
    def threads(self) -> int:
        """Threads per block."""
        return math.prod(self.block)


def read_table(report: str) -> tuple[Row, ...]:
    """The launches of a report in the order they ran; empty where it has none."""
    lines = [line for line in report.splitlines() if line.startswith('"')]
    start = next((number for number, line in enumerate(lines) if f'"{NAME}"' in line), None)
    if start is None:
        return ()
    header, *rows = csv.reader(io.StringIO("\n".join(lines[start:])))
    units: dict[str, str] = {}
    if rows and not rows[0][header.index(NAME)]:  # a line of units has no kernel
        units = dict(zip(header, rows.pop(0), strict=False))
    return tuple(_row(dict(zip(header, row, strict=False)), units) for row in rows)


def _row(cells: Mapping[str, str], units: Mapping[str, str]) -> Row:
    values = {}
    for name, cell in cells.items():
        number = _number(cell)
        if number is not None and "__" in name:  # metrics have two underscores, other columns do not
            values[name] = number * FACTORS.get(units.get(name, ""), 1.0)
    return Row(cells.get(NAME, ""), _extent(cells.get(GRID, "")), _extent(cells.get(BLOCK, "")), values)


def _number(cell: str) -> float | None:
    """A figure with or without thousands separators; ``None`` for ``n/a`` and whatever else is none."""
    try:
        value = float(cell.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _extent(cell: str) -> tuple[int, ...]:
    """``(8192, 1, 1)`` as the report writes it."""
    return tuple(int(number) for number in re.findall(r"\d+", cell)) or (1,)


def first_error(report: str) -> str:
    """The profiler's first complaint, empty where it has none."""
    found = ERROR.search(report)
    return found.group(1) if found else ""
