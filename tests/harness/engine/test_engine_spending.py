"""Budgets of tokens, turns and money; stopping or asking at the limit; raising it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.domain.codec import to_document
from harness.domain.errors import GoalError
from harness.domain.goal import AgentChoice, Budget, Goal, check_goal, goal_from_document
from harness.domain.vocabulary import Comparison
from harness.engine import rules
from harness.engine.actions import AskAgent, PlateauCause, PlateauChoice, ProposePlateau
from harness.engine.errors import EngineError
from harness.engine.results import AgentFailed, PlateauChosen, PlateauReached
from harness.engine.state import CampaignState, RoundStatus, Status
from harness.engine.step import apply, next_action
from tests.harness.engine.campaigns import begun, evaluated, goal, proposal


def campaign(**limits: Any) -> CampaignState:
    """A campaign of a language model with a measured baseline and these limits beside 20 rounds."""
    return begun(replace(goal(), agent=AgentChoice("openai", "here", "m1"), budget=Budget(20, None, None, **limits)))


def after_one(state: CampaignState, **paid: Any) -> CampaignState:
    """After a first round that cost ``paid``."""
    from tests.harness.engine.campaigns import IDEAS

    state = apply(state, replace(proposal(1, "a", "h1", ideas=IDEAS), **paid))
    return apply(state, evaluated(1, "a", Comparison.CANNOT_TELL))


@pytest.mark.parametrize(("limit", "paid"), [
    ({"tokens": 1000}, {"tokens": 1000}), ({"turns": 4}, {"turns": 4}), ({"money": 0.25}, {"money": 0.25})])
def test_each_limit_ends_the_campaign_when_it_is_reached(limit: dict[str, Any], paid: dict[str, Any]) -> None:
    name, value = next(iter(paid.items()))
    below = after_one(campaign(**limit), **{name: type(value)(value * 0.75)})
    assert isinstance(next_action(below), AskAgent)
    action = next_action(after_one(campaign(**limit), **paid))
    assert isinstance(action, ProposePlateau) and action.cause is PlateauCause.BUDGET
    assert action.options == (PlateauChoice.FINISH,)


def test_failed_askings_cost_too_and_the_limit_ends_the_round_between_two_askings() -> None:
    state = campaign(tokens=1000)
    state = apply(state, AgentFailed(1, "nothing of use", "model", tokens=600))
    assert next_action(state) == AskAgent(1, "diagnosis", ("nothing of use",))
    state = apply(state, AgentFailed(1, "still nothing", "model", tokens=600))
    action = next_action(state)
    assert isinstance(action, ProposePlateau) and action.cause is PlateauCause.BUDGET
    state = apply(state, PlateauReached(action.cause))
    assert state.status is Status.PLATEAU and state.rounds[-1].status is RoundStatus.CANCELLED
    assert state.concluded == () and "1200 of 1000 tokens" in state.cause


def asking(**limits: Any) -> CampaignState:
    """A campaign that asks at its limit of 1000 tokens, on the plateau that this led to."""
    state = after_one(campaign(tokens=1000, at_limit="ask", **limits), tokens=1000)
    action = next_action(state)
    assert isinstance(action, ProposePlateau)
    assert action.options == (PlateauChoice.FINISH, PlateauChoice.RAISE_BUDGET)
    return apply(state, PlateauReached(action.cause))


def test_a_raised_budget_lets_the_campaign_go_on_and_leaves_the_goal() -> None:
    state = asking()
    raised = replace(state.allowance, tokens=5000)
    state = apply(state, PlateauChosen(PlateauChoice.RAISE_BUDGET, person="ada", budget=raised))
    assert next_action(state) == AskAgent(2, "candidate") and state.allowance.tokens == 5000
    assert state.goal.budget.tokens == 1000
    assert state.window_from == 0  # only the money grew: the plateau count goes on


@pytest.mark.parametrize(("budget", "words"), [
    (None, "Say what may be spent"),
    (Budget(20, None, None, tokens=1000, at_limit="ask"), "Raise that limit too"),
    (Budget(19, None, None, tokens=5000), "only raised"),
    (Budget(20, 60, None, tokens=5000), "only raised"),
])
def test_a_budget_that_does_not_help_or_falls_is_refused(budget: Budget | None, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        apply(asking(), PlateauChosen(PlateauChoice.RAISE_BUDGET, budget=budget))


def test_nobody_is_asked_where_nobody_attends() -> None:
    state = after_one(campaign(tokens=1000, at_limit="ask"), tokens=1000)
    assert rules.plateau_options(replace(state, attended=False), PlateauCause.BUDGET) == (PlateauChoice.FINISH,)


@pytest.mark.parametrize(("change", "key"), [
    ({"budget": Budget(money=0.0)}, "budget.money"), ({"budget": Budget(turns=0)}, "budget.turns"),
    ({"budget": Budget(money=float("inf"))}, "budget.money"), ({"budget": Budget(money=float("nan"))}, "budget.money"),
    ({"agent": AgentChoice("openai", best_of=0)}, "agent.best_of"),
    ({"agent": AgentChoice("openai", best_of=9)}, "agent.best_of")])
def test_a_goal_with_limits_that_mean_nothing_is_refused(change: dict[str, Any], key: str) -> None:
    with pytest.raises(GoalError) as refused:
        check_goal(replace(goal(), **change))
    assert refused.value.key == key


def test_goals_from_before_these_limits_keep_their_document_and_digest() -> None:
    old = to_document(goal())
    assert not {"money", "turns", "at_limit"} & set(old["budget"]) and "best_of" not in old["agent"]
    assert goal_from_document(old).digest == goal().digest
    new = replace(goal(), budget=Budget(money=1.0, at_limit="ask"), agent=AgentChoice("openai", best_of=3))
    assert goal_from_document(to_document(new)) == new and isinstance(new, Goal)
