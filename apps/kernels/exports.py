"""Raw samples as files: the exact stored bytes, and the same values as a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from apps.core.spreadsheet import cell

COLUMNS = ("shape", "kind", "against", "round", "pair", "other_us", "candidate_us")


def samples_csv(samples: Mapping[str, Any]) -> str:
    """One line per pair: ``kind`` is ``paired`` or ``control`` (the A/A pairs, two copies of one kernel); then one
    line per single value of ``cold``, ``hot``, ``repeated`` and ``first_call``, in the column of its side."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(COLUMNS)
    for shape in samples.get("shapes", ()):
        writer.writerows([cell(value) for value in row] for row in _rows(shape))
    return output.getvalue()


def _rows(shape: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    name = shape["shape"]
    for role, rounds in (shape.get("versus") or {}).items():
        yield from _paired(name, "paired", role, rounds)
    yield from _paired(name, "control", "itself", shape.get("aa") or ())
    for number, value in enumerate(shape.get("cold") or (), 1):
        yield name, "cold", "", "", number, "", value
    for kind, key in (("hot", "hot"), ("repeated", "repeated"), ("first_call", "first_calls")):
        for side, values in (shape.get(key) or {}).items():
            for number, value in enumerate(values, 1):
                mine = side == "candidate"
                yield name, kind, "" if mine else side, "", number, "" if mine else value, value if mine else ""


def _paired(name: str, kind: str, role: str, rounds: Any) -> Iterator[tuple[Any, ...]]:
    for number, one in enumerate(rounds, 1):
        for pair, (other, mine) in enumerate(zip(one["other"], one["candidate"], strict=True), 1):
            yield name, kind, role, number, pair, other, mine
