"""Whatever happens in whatever order: replay is exact, budgets hold, closed directions stay closed."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.codec import to_document
from harness.domain.goal import LIMITS, AgentChoice, Budget
from harness.domain.proposal import Candidate, Proposal
from harness.domain.vocabulary import Comparison, Outcome
from harness.engine import rules
from harness.engine.actions import AskAgent, Evaluate, EvaluateBaseline, Fail, Finish, TakeQueued, WaitForPerson
from harness.engine.log import log_entries
from harness.engine.results import (
    AgentFailed,
    BudgetClock,
    InfrastructureFault,
    PlateauChosen,
    Proposed,
    QueueTaken,
    Result,
    Resumed,
    Steered,
    result_from_document,
    result_to_document,
)
from harness.engine.state import CampaignState, RoundStatus, Status
from harness.engine.step import apply, next_action, replay
from tests.harness.engine.campaigns import IDEAS, acknowledgement, evaluated, goal, proposal, source_of, start

ENDS = (Comparison.FASTER, Comparison.SLOWER, Comparison.CANNOT_TELL, Outcome.INCORRECT_NUMERIC, Outcome.TIMEOUT,
        Outcome.INFRA_ERROR, Outcome.POLICY_VIOLATION)
NAMES = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")


@st.composite
def histories(draw: st.DrawFn) -> tuple[CampaignState, list[Result]]:
    """A fresh campaign and a legal sequence of results for it, drawn by following its own actions."""
    agent = AgentChoice(draw(st.sampled_from(("playbook", "openai", "openai", "mcp"))), "here", "m1", best_of=3)
    limits = Budget(draw(st.integers(1, 7)), draw(st.integers(1, 7)), 500.0, tokens=draw(st.integers(50, 900)),
                    money=draw(st.one_of(st.none(), st.floats(0.1, 2.0))), turns=draw(st.integers(2, 30)),
                    at_limit=draw(st.sampled_from(("stop", "ask"))))
    fresh = start(replace(goal(), agent=agent, budget=limits), attended=draw(st.booleans()))
    state, results = fresh, []
    for _ in range(draw(st.integers(0, 45))):
        action = next_action(state)
        if isinstance(action, Finish | Fail):
            break
        result = _steer(draw, state) or _answer(draw, state, action)
        results.append(result)
        state = apply(state, result)
    return fresh, results


def _steer(draw: st.DrawFn, state: CampaignState) -> Result | None:
    """Now and then a person steers, whatever the campaign does just then."""
    if state.goal.agent.kind == "playbook" or draw(st.integers(0, 6)):
        return None
    ways = [Steered("ada", "hint", draw(st.text(min_size=1, max_size=9).filter(str.strip))),
            Steered("ada", "forbid", direction=draw(st.sampled_from(("tiling", "fusion:_kernel", "launch"))))]
    if state.forbidden:
        ways.append(Steered("bob", "allow", direction=state.forbidden[0][0]))
    if state.status is not Status.PLATEAU:
        ways.append(Steered("bob", "restructure"))
    if state.goal.agent.kind == "openai":
        ways.append(Steered("bob", "model", model=draw(st.sampled_from(("m1", "m2")))))
    return draw(st.sampled_from(ways))


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
        choice = draw(st.sampled_from(rules.plateau_options(state, state.plateau)))
        return PlateauChosen(choice, person="ada", budget=_raised(state) if choice == "raise_budget" else None)
    if isinstance(action, TakeQueued):
        return QueueTaken(action.round)
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


def _raised(state: CampaignState) -> Budget:
    """Twice of everything, and at least what was spent and a little more."""
    was, spent = state.allowance, state.spent
    return replace(was, **{name: 2 * max(getattr(was, name), getattr(spent, name)) + 1
                           for name in LIMITS if getattr(was, name) is not None})


def _turn(draw: st.DrawFn, state: CampaignState, action: AskAgent) -> Result:
    kind = draw(st.integers(0, 9))
    paid = {"tokens": draw(st.integers(0, 200)), "money": draw(st.floats(0, 0.5)), "turns": draw(st.integers(0, 5))}
    if kind == 0:
        return AgentFailed(action.round, "no answer", draw(st.sampled_from(("model", "provider"))), **paid)
    if kind == 1:
        return Proposed(action.round, Proposal("give_up", True, reason="out of ideas"), True, **paid)
    if kind == 2:
        return BudgetClock(draw(st.floats(0, 600)))
    ideas = IDEAS if not state.diagnosed else ()
    retry = draw(st.one_of(st.none(), st.integers(1, 5)))
    answer = proposal(action.round, draw(st.sampled_from(NAMES)), draw(st.sampled_from(("h1", "h2", "h3", "h9"))),
                      ideas=ideas, queried=draw(st.integers(0, 9)) > 0, retry_of=retry,
                      difference=None if retry is None else "another axis")
    others = draw(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(("h1", "h2", "h3", "h9"))), max_size=3))
    candidates = tuple(Candidate(idea, source_of(name), f"change {name}") for name, idea in others)
    return replace(answer, proposal=replace(answer.proposal, alternatives=candidates), purpose=action.purpose, **paid,
                   alternative_digests=tuple(f"normal-{name}" for name, _ in others))


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
    state = fresh
    for result in results:
        before = state
        state = apply(state, result)
        budget = state.allowance
        assert budget.rounds is not None and budget.evaluations is not None and budget.seconds is not None
        assert len(state.concluded) <= budget.rounds
        assert sum(record.evaluated for record in state.rounds) <= budget.evaluations
        if before.seconds >= (before.allowance.seconds or 0) and before.active_round is None:
            assert not isinstance(next_action(before), AskAgent)
        if rules.asking_spent(before) is not None:
            assert not isinstance(next_action(before), AskAgent | TakeQueued)
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
        if not isinstance(result, Proposed | QueueTaken) or not state.rounds or state.rounds[-1].candidate is None:
            continue
        record = state.rounds[-1]
        accepted = record.number == result.round and was is not RoundStatus.EVALUATING
        if accepted and record.direction in closed:
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


@settings(max_examples=150, deadline=None)
@given(histories())
def test_nobody_goes_where_a_person_forbade_and_words_change_nothing_else(
    history: tuple[CampaignState, list[Result]]
) -> None:
    fresh, results = history
    state = fresh
    for result in results:
        before = state
        state = apply(state, result)
        if isinstance(result, Proposed | QueueTaken) and state.active_round is not None:
            direction = state.active_round.direction
            assert direction is None or rules.forbidden_by(before, direction) is None
        if isinstance(result, Steered):
            for name in ("goal", "grant", "rounds", "incumbent", "baseline_verdict", "reviewed", "spent", "budget",
                         "status", "hypotheses", "spot_checks"):
                assert getattr(state, name) == getattr(before, name), name


@settings(max_examples=150, deadline=None)
@given(histories())
def test_what_was_paid_is_the_sum_of_what_was_told(history: tuple[CampaignState, list[Result]]) -> None:
    fresh, results = history
    end = replay(fresh, results)
    told = [result for result in results if isinstance(result, Proposed | AgentFailed)]
    assert end.tokens == sum(result.tokens for result in told) and end.turns == sum(result.turns for result in told)
    assert end.money == sum(result.money for result in told)


@settings(max_examples=100, deadline=None)
@given(histories())
def test_no_tree_is_measured_twice(history: tuple[CampaignState, list[Result]]) -> None:
    fresh, results = history
    trees = [record.normal_digest for record in replay(fresh, results).rounds if record.evaluated]
    assert len(trees) == len(set(trees))
