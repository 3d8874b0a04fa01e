"""Library peers measured in an environment class, as reference lines of its boards."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log
from pathlib import Path
from typing import Any

from apps.bridge.api.errors import BridgeError, translated

RIGHT_SIDES = ("ours", "control")


@dataclass(frozen=True, slots=True)
class LibraryFacts:
    """One library on one operator and workload. ``over_baseline``: the shipped baseline's time over the library's,
    geometric mean by the shapes' weights; ``None`` where a shape is missing or wrong, ``absent`` then says why."""

    name: str
    version: str
    over_baseline: float | None
    shapes: int
    of: int
    absent: str
    medians_us: tuple[tuple[str, float], ...] = ()  # of the shapes that it computed right


def libraries(environment_class: str, operator: str, workload: str) -> tuple[LibraryFacts, ...]:
    """What libraries took in this environment class, fastest first; empty where nobody measured them here."""
    with translated():
        from harness.evaluation.library import path_of
        from harness.operators.registry import get

        path = path_of(environment_class)
        with contextlib.suppress(OSError, BridgeError):
            document = _peers(path, path.stat().st_mtime_ns)
            if document["workload"] != workload or document["environment"]["class"] != environment_class:
                return ()
            points = get(operator).workloads[workload].shapes[document["backend"]]
            weights = {point.label: point.weight for point in points}
            return _facts([row for row in document["rows"] if row["operator"] == operator], weights)
    return ()


@lru_cache(maxsize=8)
def _peers(path: Path, stamp: int) -> dict[str, Any]:
    """A document of peers as it was at ``stamp``."""
    with translated():
        from harness.domain.codec import check_schema
        from harness.domain.errors import DocumentError

        try:
            document: dict[str, Any] = json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise DocumentError(f"{path.name} is no JSON document.") from error
        check_schema(document, "peers")
        return document


def _facts(rows: list[dict[str, Any]], weights: dict[str, float]) -> tuple[LibraryFacts, ...]:
    base = {row["shape"]: row["median_us"] for row in rows
            if row["name"] == "baseline" and row["side"] in RIGHT_SIDES and row["median_us"] is not None}
    found = []
    for name in dict.fromkeys(row["name"] for row in rows if row["side"] == "peer"):
        mine = [row for row in rows if row["side"] == "peer" and row["name"] == name]
        timed = {row["shape"]: row["median_us"] for row in mine
                 if row["median_us"] is not None and row["right"] is not False}
        whole = bool(weights) and all(shape in timed and shape in base for shape in weights)
        gain = exp(sum(weight * log(base[shape] / timed[shape]) for shape, weight in weights.items())
                   / sum(weights.values())) if whole else None
        found.append(LibraryFacts(
            name, next((row["version"] for row in mine if row["version"]), ""), gain, len(timed), len(weights),
            next((row["absent"] for row in mine if row["absent"]), ""), tuple(timed.items())))
    return tuple(sorted(found, key=lambda one: (one.over_baseline is None, -(one.over_baseline or 0.0))))
