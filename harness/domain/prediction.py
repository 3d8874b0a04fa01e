"""What was predicted against what was measured, step by step: a view of the experiment log, and its calibration.

An agent's predictions are worth something only where measurements bear them out. The error of one is the difference of
log gains, so that twice too much and twice too little weigh the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from harness.domain.log import LogEntry
from harness.domain.vocabulary import Outcome, Tier

Judgement = Literal["hit", "promised too much", "promised too little", "not timed"]

TOLERANCE = 0.05
"""Log gain by which a prediction may be off whatever its size; above that, by half of what was predicted."""
LEAST = 0.01
"""A gain of -100 %, which anybody may state, has no logarithm: whatever is slower than this share is taken for it."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One step of a campaign. Gains are fractions over the incumbent of that round (0.35 is +35 %); ``measured``,
    ``low`` and ``high`` (the interval), and ``error`` = ln(1 + measured) - ln(1 + predicted) are ``None`` where
    nothing was timed."""

    round: int
    step: str
    direction: str
    tier: Tier | None
    outcome: Outcome
    predicted: float
    measured: float | None
    low: float | None
    high: float | None
    error: float | None
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well a group of predictions was borne out. ``n`` counts those that were measured, ``hits`` the ones that
    count as right; ``mean_error`` (negative: promised too much) and ``mean_absolute_error`` are of log gains, ``None``
    where nothing was measured. ``untimed`` counts predictions without a measurement."""

    n: int
    hits: int
    untimed: int
    mean_error: float | None
    mean_absolute_error: float | None


def predictions(entries: Iterable[LogEntry]) -> tuple[Prediction, ...]:
    """One row per round that stated an expected gain, in the log's order."""
    return tuple(_row(entry, entry.expected_gain) for entry in entries if entry.expected_gain is not None)


def calibration(rows: Iterable[Prediction]) -> Calibration:
    """The summary of ``rows``."""
    rows = tuple(rows)
    errors = [row.error for row in rows if row.error is not None]
    return Calibration(
        n=len(errors), hits=sum(row.judgement == "hit" for row in rows), untimed=len(rows) - len(errors),
        mean_error=math.fsum(errors) / len(errors) if errors else None,
        mean_absolute_error=math.fsum(map(abs, errors)) / len(errors) if errors else None)


def calibration_by(rows: Iterable[Prediction], key: Callable[[Prediction], str]) -> dict[str, Calibration]:
    """The summary of every group of ``rows`` that share ``key``, in order of first appearance."""
    groups: dict[str, list[Prediction]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return {name: calibration(group) for name, group in groups.items()}


def in_words(summary: Calibration) -> str:
    """One sentence for people."""
    untimed = f"; {summary.untimed} not timed" if summary.untimed else ""
    if summary.mean_absolute_error is None or summary.mean_error is None:
        return f"no prediction was measured{untimed}"
    bias = ("promised too much" if summary.mean_error < 0 else "promised too little") + " on average"
    return (f"{summary.hits} of {summary.n} predictions hit, mean absolute error of the log gain "
            f"{summary.mean_absolute_error:.3f} (n = {summary.n}), {bias} by {abs(summary.mean_error):.3f}{untimed}")


def _row(entry: LogEntry, predicted: float) -> Prediction:
    change = entry.performance_change
    if change is None:
        return Prediction(entry.round, entry.change_summary, entry.direction, entry.step_tier, entry.outcome, predicted,
                          None, None, None, None, "not timed")
    error = _log(change.ratio) - _log(1.0 + predicted)
    return Prediction(entry.round, entry.change_summary, entry.direction, entry.step_tier, entry.outcome, predicted,
                      change.ratio - 1.0, change.low - 1.0, change.high - 1.0, error, _judged(error, predicted))


def _judged(error: float, predicted: float) -> Judgement:
    if abs(error) <= max(TOLERANCE, abs(_log(1.0 + predicted)) / 2):
        return "hit"
    return "promised too much" if error < 0 else "promised too little"


def _log(ratio: float) -> float:
    return math.log(max(ratio, LEAST))
