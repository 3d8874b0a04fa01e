"""Best of n: distinct alternatives become rounds of their own, without another question to the model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.domain.goal import AgentChoice
from harness.domain.proposal import Candidate
from harness.domain.vocabulary import Comparison, Outcome
from harness.engine.actions import AskAgent, Evaluate, TakeQueued
from harness.engine.errors import EngineError
from harness.engine.results import HypothesesEdited, Proposed, QueueTaken, Steered
from harness.engine.state import CampaignState
from harness.engine.step import apply, next_action
from tests.harness.engine.campaigns import IDEAS, begun, evaluated, goal, played, proposal, source_of


def samples(number: int, *names: str, hypothesis: str = "h2", digests: dict[str, str | None] | None = None) -> Proposed:
    """One answer with a candidate for each name; the first is the preferred one."""
    first = proposal(number, names[0], hypothesis)
    others = tuple(Candidate(hypothesis, source_of(name), f"change {name}") for name in names[1:])
    known = digests or {}
    return replace(first, proposal=replace(first.proposal, alternatives=others),
                   alternative_digests=tuple(known.get(name, f"normal-{name}") for name in names[1:]))


def started() -> CampaignState:
    """A language model's campaign after a round that tried kernel ``a``."""
    return played(begun(replace(goal(), agent=AgentChoice("openai", "here", "m1", best_of=4))),
                  ("a", "h1", Comparison.CANNOT_TELL))


def waiting(state: CampaignState) -> list[str]:
    """The queue by names of kernels."""
    return [item.candidate.change_summary.removeprefix("change ") for item in state.queued]


def test_equal_tried_and_unreadable_alternatives_fall_away_before_any_evaluation() -> None:
    state = apply(started(), samples(2, "b", "c", "b2", "a", "c2", "broken", "d", digests={
        "b2": "normal-b", "c2": "normal-c", "broken": None}))
    assert waiting(state) == ["c", "d"]


def test_each_alternative_is_a_round_of_its_own_against_the_incumbent_of_then() -> None:
    state = apply(started(), samples(2, "b", "c", "d"))
    state = apply(state, evaluated(2, "b", Comparison.FASTER))
    assert next_action(state) == TakeQueued(3)
    state = apply(state, QueueTaken(3))
    action = next_action(state)
    assert isinstance(action, Evaluate) and action.against[0].source == source_of("b")
    assert state.rounds[-1].hypothesis == IDEAS[1] and waiting(state) == ["d"]
    state = apply(state, evaluated(3, "c", Comparison.SLOWER))
    state = apply(apply(state, QueueTaken(4)), evaluated(4, "d", Comparison.CANNOT_TELL))
    assert isinstance(next_action(state), AskAgent)
    assert [record.number for record in state.concluded] == [1, 2, 3, 4] and state.spent.evaluations == 4


def test_the_first_acceptable_one_is_taken_where_the_preferred_one_is_not() -> None:
    answer = samples(2, "b", "c")
    unknown = replace(answer.proposal.candidate, hypothesis="h9")  # type: ignore[type-var]
    answer = replace(answer, proposal=replace(answer.proposal, candidate=unknown))
    state = apply(started(), answer)
    assert state.rounds[-1].candidate is not None and state.rounds[-1].candidate.change_summary == "change c"
    assert state.rounds[-1].normal_digest == "normal-c" and waiting(state) == []


def test_a_new_kernel_goes_before_one_that_was_tried() -> None:
    state = apply(started(), samples(2, "a", "c", "a2", digests={"a2": "normal-a"}))
    assert state.rounds[-1].normal_digest == "normal-c" and waiting(state) == []
    alone = apply(started(), samples(2, "a", "a2", digests={"a2": "normal-a"}))
    assert alone.rounds[-1].verdict is not None and alone.rounds[-1].verdict.outcome is Outcome.DUPLICATE


def test_budgets_hold_over_the_queue() -> None:
    state = begun(replace(goal(rounds=2), agent=AgentChoice("openai", "here", "m1", best_of=4)))
    state = apply(played(state, ("a", "h1", Comparison.CANNOT_TELL)), samples(2, "b", "c", "d"))
    state = apply(state, evaluated(2, "b", Comparison.CANNOT_TELL))
    assert type(next_action(state)).__name__ == "ProposePlateau"


def test_what_was_forbidden_closed_or_struck_meanwhile_is_left_out_without_a_round() -> None:
    state = apply(apply(started(), samples(2, "b", "c")), evaluated(2, "b", outcome=Outcome.TIMEOUT))
    forbidden = apply(state, Steered("ada", "forbid", direction="fusion"))
    after = apply(forbidden, QueueTaken(3))
    assert after.queued == () and len(after.rounds) == 2 and isinstance(next_action(after), AskAgent)
    struck = apply(state, HypothesesEdited("ada", (IDEAS[0], IDEAS[2])))
    assert apply(struck, QueueTaken(3)).queued == ()
    restructured = apply(state, Steered("ada", "restructure"))
    assert restructured.queued == () and next_action(restructured) == AskAgent(3, "restructure")


def test_nothing_is_taken_out_of_turn() -> None:
    state = apply(started(), samples(2, "b", "c"))
    with pytest.raises(EngineError, match="No alternative waits"):
        apply(state, QueueTaken(3))  # round 2 is still being measured
    state = apply(state, evaluated(2, "b", Comparison.CANNOT_TELL))
    with pytest.raises(EngineError, match="next round is 3"):
        apply(state, QueueTaken(7))
