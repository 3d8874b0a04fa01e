"""R7, R14: the log is queried, bounces stay in their round, duplicates point to theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.domain.digest import digest_source
from harness.domain.proposal import Proposal
from harness.domain.vocabulary import Comparison, Outcome, Role, Tier
from harness.engine.actions import AskAgent, Evaluate, EvaluateBaseline, Fail, ProposePlateau, WaitForPerson
from harness.engine.errors import EngineError
from harness.engine.log import log_entries
from harness.engine.results import (
    AgentFailed,
    BaselineMeasured,
    Evaluated,
    HypothesesEdited,
    InfrastructureFault,
    Paused,
    Proposed,
    Resumed,
    Stopped,
)
from harness.engine.state import RoundStatus, Status
from harness.engine.step import apply, next_action
from tests.harness.engine.campaigns import (
    BASELINE,
    IDEAS,
    begun,
    evaluated,
    goal,
    played,
    proposal,
    source_of,
    start,
    verdict,
)


def test_a_campaign_begins_with_its_baseline_and_then_a_diagnosis() -> None:
    state = start()
    action = next_action(state)
    assert isinstance(action, EvaluateBaseline) and action.kernel.source == BASELINE
    assert next_action(apply(state, BaselineMeasured(verdict()))) == AskAgent(1, "diagnosis")


def test_a_refused_baseline_fails_the_campaign_with_what_to_do() -> None:
    state = apply(start(), BaselineMeasured(verdict(outcome=Outcome.INCORRECT_NUMERIC)))
    action = next_action(state)
    assert isinstance(action, Fail) and "doctor" in action.text and "it failed" in action.text


def test_the_baselines_outage_pauses_after_three_faults_and_resumes() -> None:
    state = start()
    for _ in range(2):
        state = apply(state, InfrastructureFault(0, "no worker"))
        assert isinstance(next_action(state), EvaluateBaseline)
    state = apply(state, InfrastructureFault(0, "no worker"))
    assert state.status is Status.PAUSED and state.code == "worker_outage"
    assert isinstance(next_action(apply(state, Resumed("ada"))), EvaluateBaseline)


@pytest.mark.parametrize("count", [0, 2, 6])
def test_a_diagnosis_needs_three_to_five_hypotheses(count: int) -> None:
    ideas = tuple(replace(IDEAS[0], id=f"x{n}") for n in range(count))
    state = apply(begun(), proposal(1, "a", "x0", ideas=ideas))
    action = next_action(state)
    assert isinstance(action, AskAgent) and action.round == 1 and str(count) in action.bounced[0]


def test_a_proposal_without_a_query_of_the_log_is_bounced_whoever_claims_it() -> None:
    unproved = proposal(1, "a", "h1", ideas=IDEAS, queried=False)
    unsaid = Proposed(1, Proposal("candidate", False, IDEAS, unproved.proposal.candidate), True, "normal-a")
    for result in (unproved, unsaid):
        state = apply(begun(), result)
        assert state.rounds[-1].bounces[0].code == "log_not_queried"
        assert next_action(state) == AskAgent(1, "diagnosis", (state.rounds[-1].bounces[0].text,))


def test_the_third_bounce_concludes_the_round_as_failed() -> None:
    state = begun(goal(rounds=2))
    for _ in range(3):
        state = apply(state, proposal(1, "a", "h1", ideas=IDEAS, queried=False))
    assert state.rounds[0].status is RoundStatus.CONCLUDED
    entry = log_entries(state)[0]
    assert (entry.outcome, entry.conclusion, entry.limits_passed) == (Outcome.POLICY_VIOLATION, "failed", False)
    assert next_action(state) == AskAgent(2, "diagnosis")


def test_a_models_failure_is_a_bounce_and_a_providers_failure_counts_nothing() -> None:
    state = apply(begun(), AgentFailed(1, "it answered nonsense", "model"))
    assert next_action(state) == AskAgent(1, "diagnosis", ("it answered nonsense",))
    state = apply(begun(), AgentFailed(1, "connection refused", "provider"))
    assert state.status is Status.PAUSED and "connection refused" in state.cause
    assert next_action(apply(state, Resumed("ada"))) == AskAgent(1, "diagnosis")


def test_hypotheses_alone_are_followed_by_a_candidate_in_the_same_round() -> None:
    state = apply(begun(), Proposed(1, Proposal("hypotheses", True, IDEAS), True))
    assert next_action(state) == AskAgent(1, "candidate")
    state = apply(state, proposal(1, "a", "h2"))
    assert isinstance(next_action(state), Evaluate)


def test_a_candidate_for_an_unknown_hypothesis_is_bounced() -> None:
    state = apply(begun(), proposal(1, "a", "h9", ideas=IDEAS))
    assert state.rounds[-1].bounces[0].code == "hypothesis_unknown" and state.hypotheses == ()


def test_an_evaluation_stands_against_the_incumbent_and_later_also_the_baseline() -> None:
    state = apply(begun(), proposal(1, "a", "h1", ideas=IDEAS))
    action = next_action(state)
    assert isinstance(action, Evaluate)
    assert [(o.role, o.source) for o in action.against] == [(Role.INCUMBENT, BASELINE)]
    assert action.candidate.digest == digest_source(source_of("a")) and action.grant is Tier.MEDIUM
    state = apply(state, evaluated(1, "a", Comparison.FASTER))
    state = apply(state, proposal(2, "b", "h2"))
    action = next_action(state)
    assert isinstance(action, Evaluate)
    assert [(o.role, o.source) for o in action.against] == [
        (Role.INCUMBENT, source_of("a")), (Role.BASELINE, BASELINE)]


@pytest.mark.parametrize("end", [Comparison.SLOWER, Comparison.CANNOT_TELL, Outcome.TIMEOUT])
def test_only_a_faster_kernel_becomes_the_incumbent(end: Comparison | Outcome) -> None:
    state = played(begun(), ("a", "h1", end))
    assert state.incumbent.round == 0 and not state.improved


def test_a_kernel_tried_before_is_refused_with_a_pointer_to_its_round() -> None:
    state = played(begun(), ("a", "h1", Comparison.SLOWER), ("b", "h2", Comparison.FASTER))
    again = apply(state, proposal(3, "z", "h3", normal="normal-a"))
    assert again.rounds[-1].verdict is not None and again.rounds[-1].verdict.outcome is Outcome.DUPLICATE
    assert "round 1" in again.rounds[-1].verdict.reasons[0].text
    assert not again.rounds[-1].evaluated and log_entries(again)[-1].conclusion == "failed"
    same = apply(state, proposal(3, "z", "h3", normal="normal-b"))
    assert same.rounds[-1].verdict is not None and same.rounds[-1].verdict.outcome is Outcome.NO_CHANGE
    base = apply(state, proposal(3, "z", "h3", normal="normal-0"))
    assert base.rounds[-1].verdict is not None and "round 0" in base.rounds[-1].verdict.reasons[0].text


def test_three_faults_in_a_row_fail_the_round_pause_and_leave_the_kernel_untried() -> None:
    state = apply(begun(), proposal(1, "a", "h1", ideas=IDEAS))
    for attempt in (2, 3):
        state = apply(state, InfrastructureFault(1, "worker killed"))
        action = next_action(state)
        assert isinstance(action, Evaluate) and action.attempt == attempt
    state = apply(state, evaluated(1, "a", outcome=Outcome.INFRA_ERROR))
    assert state.rounds[0].status is RoundStatus.FAILED and isinstance(next_action(state), WaitForPerson)
    state = apply(state, Resumed("ada"))
    state = apply(state, proposal(2, "a", "h1"))
    assert isinstance(next_action(state), Evaluate) and log_entries(state) == ()


def test_a_fault_of_the_reference_fails_the_campaign_and_not_the_agent() -> None:
    state = apply(begun(), proposal(1, "a", "h1", ideas=IDEAS))
    state = apply(state, evaluated(1, "a", outcome=Outcome.INVALID_REFERENCE))
    assert isinstance(next_action(state), Fail) and "reference" in state.cause


def test_pausing_keeps_the_round_and_stopping_cancels_it() -> None:
    state = apply(begun(), proposal(1, "a", "h1", ideas=IDEAS))
    paused = apply(state, Paused("lunch", person="ada"))
    assert next_action(paused) == WaitForPerson("person", "lunch")
    arrived = apply(paused, evaluated(1, "a", Comparison.FASTER))
    assert arrived.incumbent.round == 1 and isinstance(next_action(arrived), WaitForPerson)
    stopped = apply(state, Stopped("enough", "ada"))
    assert stopped.status is Status.STOPPED and stopped.rounds[0].status is RoundStatus.CANCELLED
    with pytest.raises(EngineError, match="too late"):
        apply(stopped, evaluated(1, "a", Comparison.FASTER))


def test_impossible_results_name_what_was_expected() -> None:
    state = apply(begun(), proposal(1, "a", "h1", ideas=IDEAS))
    with pytest.raises(EngineError, match="does not wait for a verdict"):
        apply(state, evaluated(2, "a"))
    with pytest.raises(EngineError, match="not recorded"):
        apply(state, Evaluated(1, verdict(digest_source("other"))))
    with pytest.raises(EngineError, match="already"):
        apply(state, BaselineMeasured(verdict()))
    with pytest.raises(EngineError, match="does not wait for a proposal"):
        apply(state, proposal(1, "b", "h2"))


def test_people_strike_hypotheses_and_agents_may_not_bring_them_back() -> None:
    state = played(begun(), ("a", "h1", Comparison.SLOWER))
    state = apply(state, HypothesesEdited("ada", (IDEAS[0], IDEAS[2])))
    assert [h.id for h in state.hypotheses] == ["h1", "h3"] and state.struck == ("h2",)
    state = apply(state, proposal(2, "b", "h2"))
    assert state.rounds[-1].bounces[0].code == "hypothesis_unknown"
    state = apply(state, proposal(2, "b", "h2", ideas=(IDEAS[1],)))
    assert state.rounds[-1].bounces[1].code == "hypothesis_struck"


def test_a_pause_after_the_diagnosis_comes_before_the_first_candidate() -> None:
    state = apply(begun(goal(pause_after_diagnosis=True)), proposal(1, "a", "h1", ideas=IDEAS))
    assert next_action(state) == WaitForPerson("diagnosis", state.cause) and state.hypotheses == IDEAS
    assert next_action(apply(state, Resumed("ada"))) == AskAgent(1, "candidate")
    alone = apply(begun(goal(pause_after_diagnosis=True), attended=False), proposal(1, "a", "h1", ideas=IDEAS))
    assert isinstance(next_action(alone), Evaluate)


def test_giving_up_costs_no_round_and_leads_to_a_plateau() -> None:
    state = played(begun(), ("a", "h1", Comparison.FASTER))
    state = apply(state, Proposed(2, Proposal("give_up", True, reason="nothing left"), True))
    action = next_action(state)
    assert isinstance(action, ProposePlateau) and action.cause == "gave_up" and "nothing left" in action.text
    assert len(state.concluded) == 1
