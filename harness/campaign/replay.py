"""A stored campaign of a language model once more, without a network: every answer comes from the stored turns, every
verdict from the stored results, and each proposal must come out as it did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.agents.llm.agent import LanguageModel
from harness.agents.llm.endpoints import ModelFacts
from harness.agents.llm.ports import Desk, Question, TransportError
from harness.agents.llm.replay import recorded_turns
from harness.campaign.context import ask, context_of
from harness.campaign.folder import HARDWARE
from harness.campaign.model_turns import FILE, HeldTurns, kept_facts
from harness.campaign.start import start_state
from harness.domain.errors import UsageError
from harness.domain.goal import goal_from_document
from harness.domain.turn import Answer, Turn
from harness.engine.actions import AskAgent
from harness.engine.results import AgentFailed, Proposed, result_from_document
from harness.engine.state import CampaignState
from harness.engine.step import apply, next_action

ATTENDED = "attended"
"""An empty file of this name stands in the folder of a campaign that people attended: a site's, exported."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """One asking: what came of it, the turns of its round, and why it is not what was recorded (empty where it is)."""

    round: int
    purpose: str
    came: str
    turns: tuple[Turn, ...]
    differs: str = ""


class NobodyThere:
    """The transport of a replay."""

    def ask(self, question: Question, **_: object) -> Answer:
        """Raises ``TransportError``: only stored answers are given."""
        raise TransportError("No stored turn answers this question: prompt, tools or results are not those of the "
                             "recording.", kind="refused")


class ReadTurns(HeldTurns):
    """Stored turns that a replay leaves as they are."""

    def keep(self, turn: Turn) -> None:
        """Nothing is written."""


def replay(folder: Path) -> Iterator[Replayed]:
    """Every asking of the campaign in ``folder``, in order.

    Raises:
        UsageError: the folder holds no campaign of a language model.
    """
    state, results, hardware, facts = _recorded(folder)
    turns = ReadTurns(recorded_turns(folder / FILE))
    agent = LanguageModel(Desk(lambda name: NobodyThere(), turns, facts=lambda endpoint, model: facts))
    for line in results:
        result = result_from_document(json.loads(line))
        action = next_action(state)
        if isinstance(result, Proposed | AgentFailed) and isinstance(action, AskAgent):
            again = ask(agent, context_of(state, action, hardware=hardware))
            yield Replayed(action.round, action.purpose, _came(result), turns.stored(action.round),
                           _difference(result, again))
        state = apply(state, result)


def _recorded(folder: Path) -> tuple[CampaignState, list[str], dict[str, object], ModelFacts | None]:
    """The campaign before its first result, its results as lines, and hardware and model as they were then."""
    try:
        facts = kept_facts(folder)
        goal = goal_from_document(json.loads((folder / "goal.json").read_text("utf-8")))
        hardware = json.loads((folder / HARDWARE).read_text("utf-8"))
        results = (folder / "results.jsonl").read_text("utf-8").splitlines()
        baseline = next((folder / "kernels").glob("000-*.py")).read_text("utf-8")
        if not (folder / FILE).exists():
            raise FileNotFoundError(FILE)
    except (OSError, ValueError, StopIteration) as error:
        raise UsageError(f"{folder} holds no campaign of a language model: {error}. Give the folder that "
                         "`optimize --agent openai --out` wrote.") from error
    attended = (folder / ATTENDED).exists()
    return start_state(goal, attended=attended, baseline=baseline), results, hardware, facts


def _came(result: Proposed | AgentFailed) -> str:
    if isinstance(result, AgentFailed):
        return f"no proposal ({result.blame}): {result.reason}"
    candidate = result.proposal.candidate
    if candidate is None:
        return f"{result.proposal.kind}: {result.proposal.reason}".rstrip(": ")
    return f"candidate for {candidate.hypothesis}: {candidate.change_summary}"


def _difference(recorded: Proposed | AgentFailed, again: Proposed | AgentFailed) -> str:
    """The stored account of tokens and turns may differ (a clock is in it); what was proposed may not."""
    if isinstance(recorded, AgentFailed) or isinstance(again, AgentFailed):
        both = isinstance(recorded, AgentFailed) and isinstance(again, AgentFailed)
        if both and recorded.blame == again.blame:  # type: ignore[union-attr]
            return ""
        return f"recorded: {_came(recorded)}; now: {_came(again)}"
    before, now = recorded.proposal, again.proposal
    same = (before.kind, before.hypotheses, before.candidate, before.alternatives) == \
        (now.kind, now.hypotheses, now.candidate, now.alternatives)
    return "" if same else f"recorded: {_came(recorded)}; now: {_came(again)}"
