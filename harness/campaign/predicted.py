"""Prediction against measurement of one campaign: the rows, a table for a page and lines for a terminal."""

from __future__ import annotations

from html import escape

from harness.domain.prediction import Prediction, calibration, calibration_by, in_words, predictions
from harness.engine.log import log_entries
from harness.engine.state import CampaignState

SEARCH = "autotune"
"""An agent that searches and predicts nothing."""


def stated_predictions(state: CampaignState) -> tuple[Prediction, ...]:
    """The rows of a campaign; empty for an agent that searches and predicts nothing."""
    return () if state.goal.agent.kind == SEARCH else predictions(log_entries(state))


def predicted_html(rows: tuple[Prediction, ...]) -> list[str]:
    """A section of the report page; nothing where nothing was predicted."""
    if not rows:
        return []
    head = ("<table><thead><tr><th class='n'>Round</th><th>Step</th><th>Direction</th><th>Tier</th>"
            "<th class='n'>Predicted</th><th class='n'>Measured</th><th class='n'>Log error</th><th>Verdict</th></tr>"
            "</thead>")
    body = "".join(
        f"<tr><td class='n'>{row.round}</td><td>{escape(row.step)}</td><td>{escape(row.direction)}</td>"
        f"<td>{escape(str(row.tier or '-'))}</td><td class='n'>{row.predicted:+.1%}</td>"
        f"<td class='n'>{measured_text(row)}</td><td class='n'>{_error(row)}</td><td>{escape(row.judgement)}</td></tr>"
        for row in rows)
    return ["<h2>Predicted and measured gain</h2>", f"<p>{escape(in_words(calibration(rows)))}.</p>",
            f"{head}<tbody>{body}</tbody></table>"]


def predicted_lines(rows: tuple[Prediction, ...]) -> list[str]:
    """The calibration for a terminal: all predictions, then those of each direction that was measured."""
    if not rows:
        return []
    groups = calibration_by(rows, lambda row: row.direction.partition(":")[0])
    told = [f"  {name}: {in_words(group)}" for name, group in groups.items() if group.n] if len(groups) > 1 else []
    return [f"Predictions: {in_words(calibration(rows))}.", *told]


def measured_text(row: Prediction) -> str:
    """``+31.0% [+28.0%, +33.0%]``, or the words for a gain that nobody measured."""
    if row.measured is None or row.low is None or row.high is None:
        return "not timed"
    return f"{row.measured:+.1%} [{row.low:+.1%}, {row.high:+.1%}]"


def _error(row: Prediction) -> str:
    return "" if row.error is None else f"{row.error:+.3f}"
