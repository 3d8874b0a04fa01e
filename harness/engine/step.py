"""The campaign as a pure state machine: ``next_action`` looks, ``apply`` folds one result.

Replaying any prefix of the results from ``CampaignState.start`` gives the same state and therefore the
same next action: nothing here reads a clock, a random number or a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from harness.domain.request import Opponent
from harness.domain.vocabulary import Role
from harness.engine import fold, rules
from harness.engine.actions import (
    Action,
    AskAgent,
    AskSpotCheck,
    Evaluate,
    EvaluateBaseline,
    Fail,
    Finish,
    OpenReview,
    ProposePlateau,
    TakeQueued,
    WaitForPerson,
)
from harness.engine.results import Result
from harness.engine.state import CampaignState, Round, RoundStatus, Status


def apply(state: CampaignState, result: Result) -> CampaignState:
    """The state after ``result``.

    Raises:
        EngineError: the result cannot follow from this state; the state is unchanged.
    """
    return fold.FOLDS[type(result)](state, result)


def replay(start: CampaignState, results: Iterable[Result]) -> CampaignState:
    """Fold all results from a fresh campaign."""
    return reduce(apply, results, start)


def next_action(state: CampaignState) -> Action:
    """What has to happen now; calling it twice gives the same answer."""
    if state.status is Status.FAILED:
        return Fail(state.cause)
    if state.status is Status.PAUSED:
        return WaitForPerson(state.code, state.cause)
    if state.status is Status.STOPPED:
        return Finish(state.cause)
    if state.status is Status.PLATEAU or state.status is Status.FINISHED:
        if rules.review_due(state):
            return OpenReview(state.incumbent.round, state.incumbent.kernel)
        return WaitForPerson("plateau", state.cause) if state.status is Status.PLATEAU else Finish(state.cause)
    if state.baseline_verdict is None:
        return EvaluateBaseline(state.baseline)
    record = state.active_round
    return _between_rounds(state) if record is None else _within_round(state, record)


def _within_round(state: CampaignState, record: Round) -> Action:
    if record.status is RoundStatus.THINKING or record.kernel is None:
        ask = AskAgent(record.number, rules.purpose_of(state), tuple(bounce.text for bounce in record.bounces))
        # What asking costs may have run out while the agent's answers were sent back.
        return ask if rules.asking_spent(state) is None else _plateau(state) or ask
    return Evaluate(record.number, record.kernel, _opponents(state), state.grant, record.attempts + 1)


def _between_rounds(state: CampaignState) -> Action:
    due = rules.spot_check_due(state)
    if due is not None:
        return AskSpotCheck(due)
    plateau = _plateau(state)
    if plateau is not None:
        return plateau
    number = len(state.rounds) + 1
    return TakeQueued(number) if state.queued else AskAgent(number, rules.purpose_of(state))


def _plateau(state: CampaignState) -> ProposePlateau | None:
    found = rules.plateau_cause(state)
    return None if found is None else ProposePlateau(*found, rules.plateau_options(state, found[0]))


def _opponents(state: CampaignState) -> tuple[Opponent, ...]:
    """The incumbent always; the baseline beside it once they differ, because scores refer to it."""
    incumbent = state.incumbent.kernel
    sides = [Opponent(Role.INCUMBENT, incumbent.digest, incumbent.source)]
    if incumbent.digest != state.baseline.digest:
        sides.append(Opponent(Role.BASELINE, state.baseline.digest, state.baseline.source))
    return tuple(sides)
