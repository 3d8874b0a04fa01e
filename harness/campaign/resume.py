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
    are evaluations. The first line that does not fit and what follows it are left out: one that was cut off while it
    was written, or an end that a larger budget puts off."""

    state: CampaignState
    lines: tuple[str, ...] = ()
    evaluations: int = 0


def resumed(path: Path, goal: Goal) -> Resumed | None:
    """The unattended campaign with ``goal`` in folder ``path``, ``None`` where there is none: nothing was evaluated
    yet, or it had another goal (its budget apart) or another baseline."""
    state = start_state(goal, attended=False)
    try:
        before = goal_from_document(json.loads((path / "goal.json").read_text("utf-8")))
        baseline = next((path / "kernels").glob("000-*.py")).read_text("utf-8")
        text = (path / "results.jsonl").read_text("utf-8")
    except (OSError, ValueError, StopIteration, HarnessError):
        return None
    if replace(before, budget=goal.budget) != goal or digest_source(baseline) != state.baseline.digest:
        return None
    lines = []
    evaluations = 0
    for line in text.splitlines():
        try:
            result = result_from_document(json.loads(line))
            state = apply(state, result)
        except (ValueError, HarnessError):
            break
        lines.append(line)
        evaluations += isinstance(result, BaselineMeasured | Evaluated)
    return Resumed(state, tuple(lines), evaluations) if evaluations else None
