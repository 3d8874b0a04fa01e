"""An imported board as rows: libraries and kernels beside each other, shape by shape. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any

Row = Mapping[str, Any]
ORDER = {"ours": 0, "peer": 1, "control": 2}


@dataclass(frozen=True, slots=True)
class Cell:
    """One side on one shape. ``over_library`` is the fastest right library's time over this one's."""

    side: str
    name: str
    kernel: str | None
    median: float | None
    p10: float | None
    p90: float | None
    cv: float | None
    n: int
    gbps: float | None
    tflops: float | None
    roof_share: float | None
    error: float | None
    worst_ratio: float | None
    right: bool | None
    graph: bool | None
    detail: str
    absent: str
    over_library: float | None
    best_library: bool


@dataclass(frozen=True, slots=True)
class ShapeBlock:
    """A shape with all its sides, fastest first, absent ones last; ``best`` is the pair of the report."""

    shape: str
    weight: float
    bytes: int
    flops: int
    cells: tuple[Cell, ...]
    best: Row | None
    ours: Cell | None


@dataclass(frozen=True, slots=True)
class Standing:
    """One side over all shapes: geometric mean of ``over_library``, and the weighted share of the roof.

    ``shapes`` of ``of`` were timed; a side that lacks some is named and stands below those that have all.
    """

    side: str
    name: str
    kernel: str | None
    version: str
    over_library: float | None
    roof_share: float | None
    shapes: int
    of: int
    wrong: int
    absent: str
    rank: int | None = None


def blocks(document: Mapping[str, Any]) -> list[ShapeBlock]:
    """Every shape in the operator's order."""
    best = {pair["shape"]: pair for pair in document["best"]}
    found = []
    for shape in document["shapes"]:
        rows = [row for row in document["rows"] if row["shape"] == shape["shape"]]
        library = fastest(rows)
        took = library["median_us"] if library else None
        cells = sorted((cell(row, took, row is library) for row in rows),
                       key=lambda one: (one.median is None, one.median or 0.0, ORDER[one.side]))
        ours = next((one for one in cells if one.side == "ours" and one.median is not None
                     and one.right is not False), None)
        found.append(ShapeBlock(shape["shape"], shape["weight"], shape["bytes"], shape["flops"], tuple(cells),
                                best.get(shape["shape"]), ours))
    return found


def fastest(rows: Sequence[Row]) -> Row | None:
    """The fastest library that is right."""
    able = [row for row in rows if row["side"] == "peer" and row["median_us"] is not None
            and row["right"] is not False]
    return min(able, key=lambda row: row["median_us"], default=None)


def cell(row: Row, library_us: float | None, best: bool) -> Cell:
    """A row of the session with its ratio against the fastest library."""
    took = row["median_us"]
    return Cell(
        row["side"], row["name"], row.get("kernel"), took, row["p10"], row["p90"], row["cv"], row["n"], row["gbps"],
        row["tflops"], row["roof_share"], row["error"], row["worst_ratio"], row["right"], row["graph"],
        row.get("detail") or "", row.get("absent") or "", library_us / took if library_us and took else None, best)


def standings(document: Mapping[str, Any]) -> list[Standing]:
    """All sides over all shapes: those measured on every shape first, fastest first; controls are left out."""
    shown = blocks(document)
    weights = {block.shape: block.weight for block in shown}
    versions = {(row["side"], row["name"]): row.get("version") or "" for row in document["rows"]}
    sides: dict[tuple[str, str], list[tuple[str, Cell]]] = {}
    for block in shown:
        for one in block.cells:
            if one.side != "control":
                sides.setdefault((one.side, one.name), []).append((block.shape, one))
    rows = []
    for (side, name), cells in sides.items():
        timed = [(shape, one) for shape, one in cells if one.median is not None and one.right is not False]
        over = [one.over_library for _, one in timed if one.over_library is not None]
        roofs = [(weights[shape], one.roof_share) for shape, one in timed if one.roof_share is not None]
        total = sum(weight for weight, _ in roofs)
        rows.append(Standing(
            side, name, next((one.kernel for _, one in cells if one.kernel), None), versions.get((side, name), ""),
            exp(sum(log(one) for one in over) / len(over)) if over else None,
            sum(weight * share for weight, share in roofs) / total if total else None, len(timed), len(shown),
            sum(one.right is False for _, one in cells), next((one.absent for _, one in cells if one.absent), "")))
    rows.sort(key=lambda row: (row.over_library is None, -row.shapes, -(row.over_library or 0.0)))
    return numbered(rows)


def numbered(rows: Sequence[Standing]) -> list[Standing]:
    """Places among the kernels of the report that were measured on every shape; libraries are reference rows."""
    place = 0
    found = []
    for row in rows:
        if row.side == "ours" and row.over_library is not None and row.shapes == row.of:
            place += 1
            row = replace(row, rank=place)
        found.append(row)
    return found
