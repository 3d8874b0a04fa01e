"""A campaign on a terminal: one line per round while it runs, the log as a table afterwards."""

from __future__ import annotations

import sys
import time

from harness.campaign.local import Step
from harness.campaign.predicted import SEARCH
from harness.campaign.report import baseline_ratio, text_of
from harness.cli.terminal import CLEAR
from harness.domain.vocabulary import Stage
from harness.engine.actions import AskAgent, Evaluate, EvaluateBaseline
from harness.engine.log import log_entries
from harness.engine.results import BudgetClock
from harness.engine.state import CampaignState

BAR = 24


class CampaignBar:
    """A progress bar over rounds and stages on a terminal; on anything else one line per finished round."""

    def __init__(self, rounds: int | None) -> None:
        self._rounds = rounds
        self._round = 0
        self._began = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def stage(self, stage: Stage, done: int, total: int, text: str) -> None:
        """Progress inside the running evaluation."""
        if not self._terminal:
            return
        whole = (list(Stage).index(stage) + (done / total if total else 0.0)) / len(Stage)
        share = (self._round - 1 + whole) / self._rounds if self._rounds and self._round else whole
        filled = min(BAR, max(0, int(BAR * share)))
        of = f"/{self._rounds}" if self._rounds else ""
        clock = time.monotonic() - self._began
        line = f"[{'#' * filled}{'.' * (BAR - filled)}] round {self._round}{of}  {stage}  {clock:5.0f} s  {text}"
        sys.stderr.write(CLEAR)
        sys.stderr.write(line[:110])
        sys.stderr.flush()

    def step(self, step: Step) -> None:
        """One finished step of the campaign."""
        if isinstance(step.action, AskAgent):
            self._round = step.action.round
        told = isinstance(step.action, EvaluateBaseline | Evaluate | AskAgent)
        if not told or isinstance(step.result, BudgetClock):
            return
        line = _step_line(step)
        if line:
            if self._terminal:
                sys.stderr.write(CLEAR)
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    def close(self) -> None:
        """Leave a clean line."""
        if self._terminal:
            sys.stderr.write(CLEAR)


def _step_line(step: Step) -> str:
    if isinstance(step.action, EvaluateBaseline) and step.verdict is not None:
        return f"round 0: baseline {step.verdict.outcome}"
    record = step.state.rounds[-1] if step.state.rounds else None
    if record is None or record.verdict is None:
        return ""
    change = record.verdict.overall.get("incumbent")
    figure = f", {text_of(change)} over the incumbent" if change else ""
    name = record.candidate.change_summary if record.candidate else "no proposal accepted"
    word = record.verdict.comparison if record.verdict.timed else record.verdict.outcome
    return f"round {record.number}: {name}: {word}{figure}"


def print_log(state: CampaignState) -> None:
    """The experiment log as a table."""
    rows = [("round", "direction", "change", "tier", "outcome", "predicted", "over incumbent", "over baseline",
             "conclusion")]
    predicts = state.goal.agent.kind != SEARCH
    records = {record.number: record for record in state.rounds}
    for entry in log_entries(state):
        against = baseline_ratio(records[entry.round], state)
        gain = entry.expected_gain if predicts else None
        rows.append((
            str(entry.round), entry.direction, _short(entry.change_summary), str(entry.step_tier or "-"),
            str(entry.outcome), "-" if gain is None else f"{1 + gain:.3f}x",
            text_of(entry.performance_change) if entry.performance_change else "not timed",
            f"{against.ratio:.3f}x" if against else "not timed",
            str(entry.conclusion) + (" (do not repeat)" if entry.do_not_repeat else ""),
        ))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        sys.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n")


def _short(text: str, most: int = 44) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
