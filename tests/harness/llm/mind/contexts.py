"""Contexts of real campaigns: softmax on numba, rounds with real sources and made-up verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.agents.protocol import AgentContext
from harness.campaign.context import context_of
from harness.campaign.start import start_state
from harness.domain.digest import digest_source
from harness.domain.goal import AgentChoice, Goal
from harness.domain.proposal import Candidate, Claim, Hypothesis, Proposal
from harness.domain.vocabulary import Backend, Comparison, Direction, Outcome, Tier
from harness.engine.actions import AskAgent
from harness.engine.results import BaselineMeasured, Evaluated, proposed
from harness.engine.state import CampaignState
from harness.engine.step import apply, next_action
from harness.operators import registry
from tests.harness.engine.campaigns import acknowledged, verdict

BASELINE = registry.get("softmax").baseline(Backend.NUMBA)
IDEAS = (
    Hypothesis("h1", Direction.TILING, "_softmax", "Use wider partial results per row.", "40 % of the roof", 0.3),
    Hypothesis("h2", Direction.FUSION, "_softmax", "Keep the exponentials of the second pass.", "three passes", 0.2),
    Hypothesis("h3", Direction.LAUNCH, "_softmax", "Fewer temporaries per call.", "first call", 0.1),
)
CHOICE = AgentChoice("openai", endpoint="house", model="model-a")


def block(value: int) -> str:
    """The baseline with another BLOCK: a light change."""
    return BASELINE.replace('"BLOCK": 16', f'"BLOCK": {value}')


def a_goal(**more: Any) -> Goal:
    return replace(Goal("softmax", Backend.NUMBA, "cpu-test-1t", "llm", grant=Tier.HEAVY, agent=CHOICE), **more)


def begun(goal: Goal | None = None) -> CampaignState:
    """A campaign whose baseline is measured."""
    state = start_state(goal or a_goal(), attended=False)
    return apply(state, BaselineMeasured(verdict(state.baseline.digest)))


def played(state: CampaignState, *rounds: tuple[str, str, Comparison | Outcome, float | None]) -> CampaignState:
    """Rounds (source, hypothesis, what came out, claimed gain); the first one states ``IDEAS``."""
    for source, hypothesis, end, claim in rounds:
        state = acknowledged(state)
        action = next_action(state)
        assert isinstance(action, AskAgent), action
        candidate = Candidate(hypothesis, source, "another block", claim=None if claim is None else Claim(claim))
        proposal = Proposal("candidate", True, () if state.diagnosed else IDEAS, candidate)
        state = apply(state, proposed(action.round, proposal, queried_log=True))
        kernel = digest_source(source)
        result = verdict(kernel, end) if isinstance(end, Comparison) else verdict(kernel, outcome=end)
        state = apply(state, Evaluated(action.round, result))
    return state


def context(state: CampaignState | None = None, **more: Any) -> AgentContext:
    """What the agent knows at the next asking."""
    state = state or begun()
    action = next_action(state)
    assert isinstance(action, AskAgent), action
    return replace(context_of(state, action, hardware={"text": "Test processor\n- Cores: 1"}), **more)


SLOWER = (block(32), "h1", Comparison.SLOWER, 2.0)


def closed() -> CampaignState:
    """Three failed rounds have closed tiling of _softmax."""
    return played(begun(), SLOWER, (block(64), "h1", Comparison.CANNOT_TELL, None),
                  (block(128), "h1", Outcome.INCORRECT_NUMERIC, None))
