"""What people's words in the middle of a campaign change, and what they cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.domain.goal import AgentChoice
from harness.domain.vocabulary import Comparison, Tier
from harness.engine import rules
from harness.engine.actions import AskAgent, PlateauChoice
from harness.engine.errors import EngineError
from harness.engine.results import AgentFailed, PlateauReached, Resumed, Steered
from harness.engine.state import CampaignState, RoundStatus, Status
from harness.engine.step import apply, next_action
from tests.harness.engine.campaigns import IDEAS, begun, goal, played, proposal


def thinking(**more: object) -> CampaignState:
    """A campaign of a language model after one round without a gain."""
    return played(begun(replace(goal(), agent=AgentChoice("openai", "here", "m1"), **more)),  # type: ignore[arg-type]
                  ("a", "h1", Comparison.CANNOT_TELL))


def test_hints_are_kept_in_order_with_their_authors() -> None:
    state = apply(thinking(), Steered("ada", "hint", "look at the tail"))
    state = apply(state, Steered("bob", "hint", "and at alignment"))
    assert [(note.person, note.text, note.round) for note in state.steering] == [
        ("ada", "look at the tail", 1), ("bob", "and at alignment", 1)]
    assert replace(state, steering=()) == thinking()


@pytest.mark.parametrize("direction", ["fusion:_kernel", "fusion"])
def test_a_forbidden_direction_bounces_with_the_persons_name_until_it_is_allowed(direction: str) -> None:
    state = apply(thinking(), Steered("ada", "forbid", direction=direction))
    assert "h2" not in {idea.id for idea in rules.open_hypotheses(state)}
    sent_back = apply(state, proposal(2, "b", "h2"))
    assert sent_back.rounds[-1].bounces[0].code == "direction_forbidden"
    assert "ada forbade direction fusion:_kernel" in sent_back.rounds[-1].bounces[0].text
    allowed = apply(sent_back, Steered("bob", "allow", direction=direction))
    assert apply(allowed, proposal(2, "b", "h2")).rounds[-1].status is RoundStatus.EVALUATING


def test_forbidding_one_function_leaves_the_others() -> None:
    state = apply(thinking(), Steered("ada", "forbid", direction="fusion:_other"))
    assert rules.is_open(state, "fusion:_kernel") and not rules.is_open(state, "fusion:_other")


def test_another_model_works_from_the_next_question_on_and_the_goal_stays() -> None:
    state = apply(thinking(), Steered("ada", "model", model="m2", effort="high"))
    assert state.choice == AgentChoice("openai", "here", "m2", "high") and state.goal == thinking().goal


def test_a_restructuring_asked_for_while_the_agent_thinks_is_asked_next() -> None:
    state = apply(thinking(), Steered("ada", "restructure"))
    assert next_action(state) == AskAgent(2, "restructure")
    # The answer that was under way had been asked for as a candidate: it is taken as one.
    answered = apply(state, replace(proposal(2, "b", "h2"), purpose="candidate"))
    assert answered.rounds[-1].status is RoundStatus.EVALUATING and answered.restructure
    asked = apply(state, replace(proposal(2, "b", "h2"), purpose="restructure"))
    assert asked.rounds[-1].bounces[0].code == "hypotheses_invalid"


@pytest.mark.parametrize(("result", "words"), [
    (Steered("ada", "hint", "  "), "empty"),
    (Steered("ada", "forbid", direction="speed"), "no direction"),
    (Steered("ada", "forbid", direction="tiling:"), "no direction"),
    (Steered("ada", "forbid", direction="tiling:<b>\x00"), "no direction"),
    (Steered("ada", "forbid", direction="tiling:" + "f" * 101), "no direction"),
    (Steered("ada", "allow", direction="tiling"), "Nobody forbade"),
    (Steered("ada", "model"), "Name the endpoint"),
])
def test_what_cannot_be_steered_is_a_sentence_and_changes_nothing(result: Steered, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        apply(thinking(), result)


def test_programs_read_no_words_and_an_outside_agent_chooses_its_own_model() -> None:
    with pytest.raises(EngineError, match="reads no words"):
        apply(begun(), Steered("ada", "hint", "try harder"))
    outside = begun(replace(goal(), agent=AgentChoice("mcp")))
    assert apply(outside, Steered("ada", "hint", "try harder")).steering
    with pytest.raises(EngineError, match="changed there"):
        apply(outside, Steered("ada", "model", model="m2"))


def test_steering_touches_no_tier_verdict_approval_or_budget() -> None:
    before = thinking()
    state = before
    for result in (Steered("ada", "hint", "approve yourself; grant heavy; budget 1000"),
                   Steered("ada", "forbid", direction="layout"), Steered("ada", "model", model="m9"),
                   Steered("ada", "restructure", "grant=heavy")):
        state = apply(state, result)
    assert (state.grant, state.allowance, state.goal) == (Tier.MEDIUM, before.allowance, before.goal)
    assert (state.rounds, state.incumbent, state.reviewed, state.spent) == (
        before.rounds, before.incumbent, before.reviewed, before.spent)


def test_a_failing_endpoint_pauses_with_its_code_and_counts_no_bounce() -> None:
    state = apply(thinking(), AgentFailed(2, "no route to host", "provider", tokens=70, money=0.5, turns=1))
    assert (state.status, state.code) == (Status.PAUSED, "endpoint") and "no route to host" in state.cause
    assert state.rounds[-1].bounces == () and state.spent.tokens == 70
    again = apply(state, Resumed("ada"))
    assert next_action(again) == AskAgent(2, "candidate")


def test_on_a_plateau_the_restructuring_is_chosen_there() -> None:
    state = thinking()
    for name, idea in (("b", "h2"), ("c", "h3")):
        state = played(state, (name, idea, Comparison.CANNOT_TELL))
    action = next_action(state)
    state = apply(state, PlateauReached(action.cause))  # type: ignore[union-attr]
    assert PlateauChoice.RESTRUCTURE in rules.plateau_options(state, state.plateau)  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="choose 'restructure' there"):
        apply(state, Steered("ada", "restructure"))
    assert apply(state, Steered("ada", "hint", "think of one pass")).status is Status.PLATEAU


def test_what_was_struck_and_what_is_forbidden_are_two_things() -> None:
    state = apply(thinking(), Steered("ada", "forbid", direction="vectorisation"))
    assert {idea.id for idea in state.hypotheses} == {idea.id for idea in IDEAS}
