"""R7 retry, R15 plateau, R16 directions, R17 spot checks, R22 choices, reviews."""

from __future__ import annotations

import pytest

from harness.domain.digest import digest_source
from harness.domain.proposal import Claim, Hypothesis
from harness.domain.vocabulary import Comparison, Direction, Outcome, Tier
from harness.engine import rules
from harness.engine.actions import (
    AskAgent,
    AskSpotCheck,
    Evaluate,
    Finish,
    OpenReview,
    PlateauChoice,
    ProposePlateau,
    WaitForPerson,
)
from harness.engine.errors import EngineError
from harness.engine.log import claim_contradicted, log_entries
from harness.engine.results import (
    BudgetClock,
    Evaluated,
    PlateauChosen,
    PlateauReached,
    Resumed,
    ReviewDecided,
    ReviewOpened,
    SpotCheckAnswered,
    SpotCheckAsked,
    SpotCheckLapsed,
)
from harness.engine.state import CampaignState, Status
from harness.engine.step import apply, next_action
from tests.harness.engine.campaigns import (
    IDEAS,
    acknowledged,
    begun,
    evaluated,
    goal,
    played,
    proposal,
    source_of,
    verdict,
)

SLOWER, FASTER, CANNOT_TELL = Comparison.SLOWER, Comparison.FASTER, Comparison.CANNOT_TELL


def closed_tiling() -> CampaignState:
    """Direction tiling:_kernel closed by rounds 1 to 3, one of them refused."""
    return played(begun(), ("a", "h1", SLOWER), ("b", "h1", Outcome.INCORRECT_NUMERIC), ("c", "h1", CANNOT_TELL))


def flat(**more: object) -> CampaignState:
    """Three conclusive rounds in three directions without a gain: a plateau."""
    return played(begun(goal(**more)), ("a", "h1", SLOWER), ("b", "h2", CANNOT_TELL), ("c", "h3", SLOWER))


def test_three_failures_close_a_direction_and_refused_rounds_count() -> None:
    state = closed_tiling()
    assert rules.closed_directions(state) == {"tiling:_kernel": (1, 2, 3)}
    assert [entry.do_not_repeat for entry in log_entries(state)] == [True, True, True]
    bounced = apply(state, proposal(4, "d", "h1"))
    assert bounced.rounds[-1].bounces[0].code == "direction_closed" and "1, 2, 3" in bounced.rounds[-1].bounces[0].text


def test_a_gain_reopens_the_count_of_its_direction() -> None:
    state = played(begun(), ("a", "h1", SLOWER), ("b", "h1", SLOWER), ("c", "h1", FASTER), ("d", "h1", SLOWER))
    assert rules.closed_directions(state) == {}


def test_one_retry_per_campaign_with_the_essential_difference_stated() -> None:
    state = closed_tiling()
    for retry, difference in ((None, "x"), (1, None), (1, "  "), (7, "another axis")):
        bounced = apply(state, proposal(4, "d", "h1", retry_of=retry, difference=difference))
        assert bounced.rounds[-1].bounces[0].code == "direction_closed"
    state = apply(state, proposal(4, "d", "h1", retry_of=2, difference="tiles along the other axis"))
    assert isinstance(next_action(state), Evaluate) and state.retry_round == 4
    assert state.rounds[-1].candidate is not None
    assert state.rounds[-1].candidate.essential_difference == "tiles along the other axis"
    state = played(closed_tiling())
    state = apply(state, proposal(4, "d", "h1", retry_of=2, difference="tiles along the other axis"))
    state = acknowledged(apply(state, evaluated(4, "d", SLOWER)))
    bounced = apply(state, proposal(5, "e", "h1", retry_of=2, difference="again"))
    assert "used in round 4" in bounced.rounds[-1].bounces[0].text


def test_three_flat_rounds_in_two_directions_are_a_plateau() -> None:
    action = next_action(flat())
    assert isinstance(action, ProposePlateau) and action.cause == "no_gain"
    assert action.default is PlateauChoice.FINISH and "1, 2, 3" in action.text
    assert action.options == (PlateauChoice.FINISH, PlateauChoice.RESTRUCTURE, PlateauChoice.RAISE_GRANT)


@pytest.mark.parametrize(
    "rounds",
    [
        (("a", "h1", SLOWER), ("b", "h2", SLOWER)),  # only two conclusive rounds
        (("a", "h1", SLOWER), ("b", "h2", Outcome.TIMEOUT), ("c", "h3", SLOWER)),  # a refused round is not conclusive
        (("a", "h1", SLOWER), ("b", "h2", FASTER), ("c", "h3", SLOWER)),  # a gain within the window
        (("a", "h1", SLOWER), ("b", "h2", SLOWER), ("c", "h1", SLOWER)),  # h3 is untried
    ],
)
def test_no_plateau_while_something_is_open(rounds: tuple) -> None:
    assert isinstance(next_action(played(begun(), *rounds)), AskAgent)


def test_one_direction_alone_is_no_plateau() -> None:
    ideas = tuple(Hypothesis(f"h{n}", Direction.TILING, "_kernel", "t", "e", 0.1) for n in (1, 2, 3))
    state = played(begun(goal(direction_failures=9)), ("a", "h1", SLOWER), ("b", "h2", SLOWER), ("c", "h3", SLOWER),
                   ideas=ideas)
    assert isinstance(next_action(state), AskAgent)


def test_untimed_passes_are_verified_but_neither_conclusive_nor_incumbent() -> None:
    state = begun()
    for number, name in enumerate("abc", start=1):
        state = apply(state, proposal(number, name, f"h{number}", ideas=IDEAS if number == 1 else ()))
        state = apply(state, Evaluated(number, verdict(digest_source(source_of(name)), timed=False)))
    assert state.incumbent.round == 0 and isinstance(next_action(state), AskAgent)
    assert [entry.conclusion for entry in log_entries(state)] == ["inconclusive"] * 3
    assert all(entry.performance_change is None for entry in log_entries(state))


def test_the_roof_and_spent_budgets_leave_only_the_end() -> None:
    state = apply(begun(), proposal(1, "a", "h1", ideas=IDEAS))
    roof = next_action(apply(state, evaluated(1, "a", FASTER, roof=0.96)))
    assert isinstance(roof, ProposePlateau) and roof.cause == "roof" and roof.options == (PlateauChoice.FINISH,)
    for spent in (played(begun(goal(rounds=1)), ("a", "h1", FASTER)),
                  played(begun(goal(rounds=None, evaluations=1)), ("a", "h1", FASTER)),
                  apply(begun(goal(seconds=60.0)), BudgetClock(60.0))):
        action = next_action(spent)
        assert isinstance(action, ProposePlateau) and action.cause == "budget"
        assert action.options == (PlateauChoice.FINISH,) and "spent" in action.text


def test_seconds_that_run_out_within_a_round_let_it_end() -> None:
    state = apply(begun(goal(seconds=60.0)), proposal(1, "a", "h1", ideas=IDEAS))
    assert isinstance(next_action(apply(state, BudgetClock(61.0))), Evaluate)


def test_restructuring_asks_for_new_ideas_and_counts_anew() -> None:
    state = apply(flat(), PlateauReached(rules.plateau_cause(flat())[0]))  # type: ignore[index]
    assert state.status is Status.PLATEAU and isinstance(next_action(state), WaitForPerson)
    state = apply(state, PlateauChosen(PlateauChoice.RESTRUCTURE, person="ada"))
    assert next_action(state) == AskAgent(4, "restructure")
    stale = apply(state, proposal(4, "d", "h1"))
    assert stale.rounds[-1].bounces[0].code == "hypotheses_invalid"
    fresh = Hypothesis("h7", Direction.ALGORITHM, "_kernel", "rewrite", "log", 0.2)
    state = apply(state, proposal(4, "d", "h7", ideas=(fresh,)))
    assert isinstance(next_action(state), Evaluate) and state.grant is Tier.MEDIUM


def test_raising_the_grant_raises_it_for_the_next_evaluation_only_upwards() -> None:
    state = apply(flat(), PlateauReached(rules.plateau_cause(flat())[0]))  # type: ignore[index]
    with pytest.raises(EngineError, match="would not raise"):
        apply(state, PlateauChosen(PlateauChoice.RAISE_GRANT, Tier.LIGHT))
    state = apply(state, PlateauChosen(PlateauChoice.RAISE_GRANT, Tier.HEAVY, "ada"))
    fresh = Hypothesis("h7", Direction.ALGORITHM, "_kernel", "rewrite", "log", 0.2)
    action = next_action(apply(state, proposal(4, "d", "h7", ideas=(fresh,))))
    assert isinstance(action, Evaluate) and action.grant is Tier.HEAVY
    assert state.goal.grant is Tier.MEDIUM  # the goal stays frozen
    with pytest.raises(EngineError, match="needs a campaign that is plateau"):
        apply(state, PlateauChosen(PlateauChoice.FINISH))


def test_a_review_opens_on_the_plateau_once_per_incumbent_and_finishing_ends() -> None:
    state = acknowledged(played(begun(goal(rounds=2)), ("a", "h1", FASTER), ("b", "h2", SLOWER)))
    action = next_action(state)
    assert isinstance(action, ProposePlateau)
    state = apply(state, PlateauReached(action.cause))
    review = next_action(state)
    assert isinstance(review, OpenReview) and review.round == 1 and review.kernel == state.incumbent.kernel
    state = apply(state, ReviewOpened(1, review.kernel.digest))
    assert isinstance(next_action(state), WaitForPerson)
    assert isinstance(next_action(apply(state, PlateauChosen(PlateauChoice.FINISH))), Finish)


def test_no_review_without_an_improvement_or_without_people() -> None:
    for state in (begun(goal(rounds=1)), begun(goal(rounds=1), attended=False)):
        end = FASTER if not state.attended else SLOWER
        state = played(state, ("a", "h1", end))
        action = next_action(state)
        assert isinstance(action, ProposePlateau)
        state = apply(apply(state, PlateauReached(action.cause)), PlateauChosen(action.default))
        assert isinstance(next_action(state), Finish)


def test_requested_changes_send_the_campaign_back_with_the_words_quoted() -> None:
    state = played(begun(), ("a", "h1", FASTER), ("b", "h2", SLOWER), ("c", "h3", SLOWER), ("d", "h3", SLOWER))
    action = next_action(state)
    assert isinstance(action, ProposePlateau)
    state = apply(apply(state, PlateauReached(action.cause)), ReviewOpened(1, state.incumbent.kernel.digest))
    state = apply(state, ReviewDecided(state.incumbent.kernel.digest, "changes_requested", "keep NaN", "bob"))
    assert isinstance(next_action(state), AskAgent)
    assert (state.feedback[0].person, state.feedback[0].text) == ("bob", "keep NaN")


def test_spot_checks_come_every_fifth_verified_round_and_every_third_when_heavy() -> None:
    rounds = [(name, f"h{n % 3 + 1}", FASTER) for n, name in enumerate("abcde")]
    medium = played(begun(), *rounds[:4])
    assert isinstance(next_action(medium), AskAgent)
    medium = played(medium, rounds[4])
    assert next_action(medium) == AskSpotCheck(5)
    assert isinstance(next_action(apply(medium, SpotCheckAsked(5))), AskAgent)
    assert next_action(played(begun(goal(grant=Tier.HEAVY)), *rounds[:3])) == AskSpotCheck(3)
    assert isinstance(next_action(played(begun(goal(grant=Tier.HEAVY), attended=False), *rounds[:3])), AskAgent)


def test_two_unanswered_spot_checks_pause_a_heavy_campaign() -> None:
    rounds = [(name, f"h{n % 3 + 1}", FASTER) for n, name in enumerate("abcdefghi")]
    state = played(begun(goal(grant=Tier.HEAVY)), *rounds)
    state = apply(state, SpotCheckAsked(9))  # the checks after rounds 3 and 6 lapse unanswered
    assert state.status is Status.PAUSED and state.code == "spot_checks_unanswered"
    assert isinstance(next_action(apply(state, Resumed("ada"))), AskAgent)


def test_an_answered_or_medium_spot_check_pauses_nothing() -> None:
    rounds = [(name, f"h{n % 3 + 1}", FASTER) for n, name in enumerate("abcdef")]
    state = played(begun(goal(grant=Tier.HEAVY)), *rounds)
    state = apply(state, SpotCheckAnswered(3, "bob", "looks fine"))
    state = apply(apply(state, SpotCheckAsked(6)), SpotCheckLapsed(6))
    assert state.status is Status.RUNNING and state.feedback[0].text == "looks fine"
    medium = played(begun(goal(spot_check_every=1)), *rounds[:3])
    assert apply(medium, SpotCheckAsked(3)).status is Status.RUNNING


def test_a_search_closes_no_direction_and_meets_no_plateau_before_its_budget() -> None:
    rounds = [(name, "h1", SLOWER) for name in "abcdef"]
    state = played(begun(goal(rounds=7, agent="autotune")), *rounds)
    assert rules.closed_directions(state) == {} and isinstance(acknowledged(state), CampaignState)
    assert isinstance(next_action(acknowledged(state)), AskAgent)


@pytest.mark.parametrize(
    ("claim", "comparison", "outcome", "contradicted"),
    [
        (0.3, FASTER, Outcome.PASSED, False),
        (0.9, FASTER, Outcome.PASSED, True),  # measured 1.3x: less than half of the claim
        (0.3, SLOWER, Outcome.PASSED, True),
        (0.3, CANNOT_TELL, Outcome.PASSED, True),
        (0.3, Comparison.NONE, Outcome.INCORRECT_NUMERIC, True),
        (0.3, Comparison.NONE, Outcome.PASSED, False),  # not timed: nothing to hold against it
        (None, SLOWER, Outcome.PASSED, False),
        (-0.1, SLOWER, Outcome.PASSED, False),
    ],
)
def test_the_data_and_not_the_prose_decide(claim: float | None, comparison: Comparison, outcome: Outcome,
                                           contradicted: bool) -> None:
    measured = verdict(comparison=comparison, outcome=outcome, timed=comparison is not Comparison.NONE)
    assert claim_contradicted(Claim(claim), measured) is contradicted


def test_conclusions_follow_the_comparison() -> None:
    state = played(begun(), ("a", "h1", FASTER), ("b", "h2", SLOWER), ("c", "h3", CANNOT_TELL),
                   ("d", "h1", Outcome.TIMEOUT))
    assert [entry.conclusion for entry in log_entries(state)] == ["confirmed", "refuted", "inconclusive", "failed"]
