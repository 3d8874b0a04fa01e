"""The local loop: one campaign from its baseline to its end in this process, nobody attending.

The evaluator and the agent are passed in, so that tests run it with fakes and the command line with the real ones.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.agents.protocol import Agent
from harness.campaign.context import ask, context_of
from harness.domain.request import EvaluationRequest
from harness.domain.samples import Samples
from harness.domain.summary import summary_of
from harness.domain.verdict import Verdict
from harness.engine.actions import (
    Action,
    AskAgent,
    Evaluate,
    EvaluateBaseline,
    Fail,
    Finish,
    ProposePlateau,
    TakeQueued,
)
from harness.engine.actions import WaitForPerson as Wait
from harness.engine.requests import final_request, request_of
from harness.engine.results import (
    BaselineMeasured,
    BudgetClock,
    Evaluated,
    PlateauChosen,
    PlateauReached,
    QueueTaken,
    Result,
)
from harness.engine.state import CampaignState
from harness.engine.step import apply, next_action

Evaluator = Callable[[EvaluationRequest], tuple[Verdict, Samples | None]]
"""Judges one request; never raises for a candidate's fault."""


@dataclass(frozen=True, slots=True)
class Step:
    """What the loop tells its observer: the action taken, the result, and the verdict where one was made."""

    action: Action
    result: Result | None
    state: CampaignState
    request: EvaluationRequest | None = None
    verdict: Verdict | None = None
    samples: Samples | None = None


Observer = Callable[[Step], None]


def run_campaign(state: CampaignState, agent: Agent, evaluate: Evaluator, *, observe: Observer | None = None,
                 hardware: Mapping[str, object] | None = None, clock: Callable[[], float] = time.monotonic,
                 until: Callable[[], bool] = lambda: False) -> CampaignState:
    """Step until the campaign finishes, fails or waits for a person, who does not exist here.

    Plateaus are answered with their default. Every result goes through ``apply``; the returned state is its fold.
    Once ``until`` says so nothing new is begun and the campaign is left as it stands, for another run to go on with.
    """
    began = clock() - state.seconds
    tell = observe or _ignore
    while True:
        if until():
            return state
        action = next_action(state)
        if isinstance(action, Finish | Fail | Wait):
            tell(Step(action, None, state))
            return state
        state = _take(state, action, agent, evaluate, tell, hardware)
        if not state.status.over:
            spent = BudgetClock(clock() - began)
            state = apply(state, spent)
            tell(Step(action, spent, state))


def measure_final(state: CampaignState,
                  evaluate: Evaluator) -> tuple[EvaluationRequest, Verdict, Samples | None] | None:
    """R19: the headline figure, a fresh paired measurement of the final kernel against round 0; ``None`` while the
    baseline is still the best (there is nothing to compare)."""
    if not state.improved:
        return None
    request = final_request(state, job=uuid.uuid4().hex, nonce=uuid.uuid4().hex)
    verdict, samples = evaluate(request)
    return request, verdict, samples


def _take(state: CampaignState, action: Action, agent: Agent, evaluate: Evaluator, tell: Observer,
          hardware: Mapping[str, object] | None) -> CampaignState:
    result: Result
    if isinstance(action, EvaluateBaseline | Evaluate):
        request = request_of(state, action, job=uuid.uuid4().hex, nonce=uuid.uuid4().hex)
        verdict, samples = evaluate(request)
        summary = summary_of(verdict)
        result = Evaluated(action.round, summary) if isinstance(action, Evaluate) else BaselineMeasured(summary)
        state = apply(state, result)
        tell(Step(action, result, state, request, verdict, samples))
        return state
    if isinstance(action, AskAgent):
        result = ask(agent, context_of(state, action, hardware=hardware))
    elif isinstance(action, TakeQueued):
        result = QueueTaken(action.round)
    elif isinstance(action, ProposePlateau):
        reached = PlateauReached(action.cause)
        state = apply(state, reached)
        tell(Step(action, reached, state))
        result = PlateauChosen(action.default)
    else:
        raise AssertionError(f"an unattended campaign asked for {type(action).__name__}")
    state = apply(state, result)
    tell(Step(action, result, state))
    return state


def _ignore(step: Step) -> None:
    """Observer for callers that want only the end."""
