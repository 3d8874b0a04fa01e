"""Going on with a command-line campaign that was interrupted, from what its folder holds."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from harness.campaign.start import start_state
from harness.domain import strict_json
from harness.domain.digest import digest_source
from harness.domain.errors import HarnessError
from harness.domain.files import MAX_DOCUMENT_BYTES, read_document, read_regular
from harness.domain.goal import Goal, goal_from_document
from harness.engine.results import BaselineMeasured, Evaluated, result_from_document
from harness.engine.state import CampaignState
from harness.engine.step import apply

ADVICE = "The campaign cannot go on from it."


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
    state, before = start_state(goal, attended=False), stored_goal(path)
    try:
        baseline = _text(next((path / "kernels").glob("000-*.py")))
        text = _text(path / "results.jsonl")
    except (OSError, ValueError, StopIteration, HarnessError):
        return None
    if before is None or replace(before, budget=goal.budget) != goal:
        return None
    if digest_source(baseline) != state.baseline.digest:
        return None
    lines = []
    evaluations = 0
    for line in text.splitlines():
        try:
            document = strict_json.loads(line)
            json.dumps(document, ensure_ascii=False).encode()  # half a surrogate pair could be written nowhere
            result = result_from_document(document)
            state = apply(state, result)
        except (ValueError, RecursionError, HarnessError):
            break
        lines.append(line)
        evaluations += isinstance(result, BaselineMeasured | Evaluated)
    return Resumed(state, tuple(lines), evaluations) if evaluations else None


def stored_goal(path: Path) -> Goal | None:
    """The goal of the campaign in folder ``path``, ``None`` where none can be read."""
    try:
        return goal_from_document(read_document(path / "goal.json", "The goal", ADVICE))
    except HarnessError:
        return None


def _text(path: Path) -> str:
    return read_regular(path, MAX_DOCUMENT_BYTES, ADVICE).decode("utf-8")
