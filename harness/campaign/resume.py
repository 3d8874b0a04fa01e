"""Going on with a command-line campaign that was interrupted, from what its folder holds."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from harness.campaign.start import start_state
from harness.domain.digest import digest_source
from harness.domain.errors import HarnessError
from harness.domain.goal import Goal, goal_from_document
from harness.engine.results import BaselineMeasured, Evaluated, result_from_document
from harness.engine.state import CampaignState
from harness.engine.step import apply


@dataclass(frozen=True, slots=True)
class Resumed:
    """The campaign as far as it came: its state, the lines of ``results.jsonl`` that led there, and how many of them
    are evaluations. A last line that was cut off while it was written is left out."""

    state: CampaignState
    lines: tuple[str, ...] = ()
    evaluations: int = 0


def resumed(path: Path, goal: Goal) -> Resumed | None:
    """The unattended campaign with ``goal`` in folder ``path``, ``None`` where there is none: nothing was evaluated
    yet, or it had another goal (its budget apart), another baseline, or an engine whose results are not these."""
    state = start_state(goal, attended=False)
    try:
        before = goal_from_document(json.loads((path / "goal.json").read_text("utf-8")))
        baseline = next((path / "kernels").glob("000-*.py")).read_text("utf-8")
        text = (path / "results.jsonl").read_text("utf-8")
    except (OSError, ValueError, StopIteration, HarnessError):
        return None
    if replace(before, budget=goal.budget) != goal or digest_source(baseline) != state.baseline.digest:
        return None
    lines = text.splitlines()
    if text and not text.endswith("\n"):
        lines.pop()
    evaluations = 0
    try:
        for line in lines:
            result = result_from_document(json.loads(line))
            state = apply(state, result)
            evaluations += isinstance(result, BaselineMeasured | Evaluated)
    except (ValueError, HarnessError):
        return None
    return Resumed(state, tuple(lines), evaluations) if evaluations else None
