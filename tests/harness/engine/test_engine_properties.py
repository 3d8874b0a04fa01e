"""Whatever happens in whatever order: replay is exact, budgets hold, closed directions stay closed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.codec import to_document
from harness.domain.proposal import Proposal
from harness.domain.vocabulary import Comparison, Outcome
from harness.engine import rules
from harness.engine.actions import AskAgent, Evaluate, EvaluateBaseline, Fail, Finish, WaitForPerson
from harness.engine.log import log_entries
from harness.engine.results import (
    AgentFailed,
    BudgetClock,
    InfrastructureFault,
    PlateauChosen,
    Proposed,
    Result,
    Resumed,
    result_from_document,
    result_to_document,
)
from harness.engine.state import CampaignState, RoundStatus, Status
from harness.engine.step import apply, next_action, replay
from tests.harness.engine.campaigns import IDEAS, acknowledgement, evaluated, goal, proposal, start

ENDS = (Comparison.FASTER, Comparison.SLOWER, Comparison.CANNOT_TELL, Outcome.INCORRECT_NUMERIC, Outcome.TIMEOUT,
        Outcome.INFRA_ERROR, Outcome.POLICY_VIOLATION)
NAMES = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")


@st.composite
def histories(draw: st.DrawFn) -> tuple[CampaignState, list[Result]]:
    """A fresh campaign and a legal sequence of results for it, drawn by following its own actions."""
    fresh = start(goal(rounds=draw(st.integers(1, 7)), evaluations=draw(st.integers(1, 7)), seconds=500.0),
                  attended=draw(st.booleans()))
    state, results = fresh, []
    for _ in range(draw(st.integers(0, 45))):
        action = next_action(state)
        if isinstance(action, Finish | Fail):
            break
        result = _answer(draw, state, action)
        results.append(result)
        state = apply(state, result)
    return fresh, results


def _answer(draw: st.DrawFn, state: CampaignState, action: object) -> Result:
    known = acknowledgement(action)
    if isinstance(action, EvaluateBaseline) and draw(st.integers(0, 4)) == 0:
        return InfrastructureFault(0, "the host went away")
    if known is not None:
        return known
    if isinstance(action, WaitForPerson):
        if state.status is Status.PAUSED:
            return Resumed("ada")
        assert state.plateau is not None
        return PlateauChosen(draw(st.sampled_from(rules.plateau_options(state, state.plateau))), person="ada")
    if isinstance(action, Evaluate):
        assert action.round == state.rounds[-1].number and state.rounds[-1].candidate is not None
        if draw(st.integers(0, 5)) == 0:
            return InfrastructureFault(action.round, "the worker died")
        name = state.rounds[-1].candidate.change_summary.removeprefix("change ")
        end = draw(st.sampled_from(ENDS))
        return (evaluated(action.round, name, end) if isinstance(end, Comparison)
                else evaluated(action.round, name, outcome=end))
    assert isinstance(action, AskAgent)
    return _turn(draw, state, action)


def _turn(draw: st.DrawFn, state: CampaignState, action: AskAgent) -> Result:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return AgentFailed(action.round, "no answer", draw(st.sampled_from(("model", "provider"))))
    if kind == 1:
        return Proposed(action.round, Proposal("give_up", True, reason="out of ideas"), True)
    if kind == 2:
        return BudgetClock(draw(st.floats(0, 600)))
    ideas = IDEAS if not state.diagnosed else ()
    retry = draw(st.one_of(st.none(), st.integers(1, 5)))
    return proposal(action.round, draw(st.sampled_from(NAMES)), draw(st.sampled_from(("h1", "h2", "h3", "h9"))),
                    ideas=ideas, queried=draw(st.integers(0, 9)) > 0, retry_of=retry,
                    difference=None if retry is None else "another axis")


@settings(max_examples=150, deadline=None)
@given(histories(), st.data())
def test_replaying_any_prefix_gives_the_same_next_action(history: tuple[CampaignState, list[Result]],
                                                         data: st.DataObject) -> None:
    fresh, results = history
    cut = data.draw(st.integers(0, len(results)))
    stored = [result_from_document(result_to_document(result)) for result in results[:cut]]
    once, twice = replay(fresh, results[:cut]), replay(fresh, stored)
    assert once == twice
    assert next_action(once) == next_action(twice) == next_action(once)
    assert to_document(list(log_entries(once))) == to_document(list(log_entries(twice)))


@settings(max_examples=150, deadline=None)
@given(histories())
def test_budgets_are_never_exceeded(history: tuple[CampaignState, list[Result]]) -> None:
    fresh, results = history
    state, budget = fresh, fresh.goal.budget
    assert budget.rounds is not None and budget.evaluations is not None and budget.seconds is not None
    for result in results:
        before = state
        state = apply(state, result)
        assert len(state.concluded) <= budget.rounds
        assert sum(record.evaluated for record in state.rounds) <= budget.evaluations
        if before.seconds >= budget.seconds and before.active_round is None:
            assert not isinstance(next_action(before), AskAgent)
        assert sum(record.active for record in state.rounds) <= 1


@settings(max_examples=150, deadline=None)
@given(histories())
def test_a_closed_direction_is_tried_again_only_by_the_one_retry(history: tuple[CampaignState, list[Result]]) -> None:
    fresh, results = history
    state, retries = fresh, 0
    for result in results:
        closed = rules.closed_directions(state)
        was = state.rounds[-1].status if state.rounds else None
        state = apply(state, result)
        if not isinstance(result, Proposed) or not state.rounds or state.rounds[-1].candidate is None:
            continue
        record = state.rounds[-1]
        accepted = record.number == result.round and was is not RoundStatus.EVALUATING
        if accepted and record.direction in closed and record.candidate == result.proposal.candidate:
            retries += 1
            assert record.candidate is not None and record.candidate.essential_difference
            assert record.candidate.retry_of in closed[record.direction]
    assert retries <= 1


@settings(max_examples=150, deadline=None)
@given(histories())
def test_infrastructure_faults_change_no_count(history: tuple[CampaignState, list[Result]]) -> None:
    fresh, results = history
    state = fresh
    for result in results:
        before = state
        state = apply(state, result)
        fault = isinstance(result, InfrastructureFault) or (
            type(result).__name__ == "Evaluated" and result.verdict.outcome is Outcome.INFRA_ERROR)  # type: ignore[union-attr]
        if fault:
            assert state.concluded == before.concluded
            assert rules.closed_directions(state) == rules.closed_directions(before)
            assert rules.tried(state) == rules.tried(before)
            assert log_entries(state) == log_entries(before)
            assert rules.budget_spent(state) == rules.budget_spent(before)


@settings(max_examples=100, deadline=None)
@given(histories())
def test_the_incumbent_only_ever_improves(history: tuple[CampaignState, list[Result]]) -> None:
    fresh, results = history
    state = fresh
    for result in results:
        before = state
        state = apply(state, result)
        if state.incumbent.kernel != before.incumbent.kernel:
            assert state.incumbent.verdict is not None and state.incumbent.verdict.faster
            assert state.incumbent.round == state.rounds[-1].number > before.incumbent.round


