"""Prediction against measurement, computed from log entries; sentences as the harness words them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from apps.bridge.api.errors import translated


@dataclass(frozen=True, slots=True)
class Predicted:
    """One row a round that stated an expected gain (documents of the harness's ``Prediction``), the summary of all of
    them in words, and that of each direction; empty where nothing was predicted."""

    rows: tuple[dict[str, Any], ...]
    summary: str
    by_direction: tuple[tuple[str, str], ...]


def predicted(entries: Iterable[dict[str, Any]]) -> Predicted:
    """What the log entries of a campaign predicted and measured.

    Raises:
        BridgeError: an entry is none.
    """
    with translated():
        from harness.domain.codec import from_document, to_document
        from harness.domain.log import LogEntry
        from harness.domain.prediction import calibration, calibration_by, in_words, predictions

        rows = predictions(from_document(entry, LogEntry) for entry in entries)
        if not rows:
            return Predicted((), "", ())
        groups = calibration_by(rows, lambda row: row.direction.partition(":")[0])
        told = tuple((name, in_words(group)) for name, group in groups.items()) if len(groups) > 1 else ()
        return Predicted(tuple(to_document(list(rows))), in_words(calibration(rows)), told)
