"""Driving one campaign: rebuild its state from rows, ask the engine what is next, do it, tell the engine.

Nothing is remembered here that rows do not hold, so a runner killed at any point is replaced by another that goes on
where the rows stand. What is done outside of transactions is repeatable: a job's id follows from the round and the
attempt, asking an agent again costs its tokens and nothing else, a review exists once per kernel.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from apps.bridge import api
from apps.bridge.runner import ask, measure, people
from apps.bridge.runner.demo.names import is_background, people_at_work
from apps.campaigns import services
from apps.campaigns.choices import CAMPAIGN_ACTIVE, CampaignState
from apps.campaigns.models import Campaign, EngineResult
from apps.core.errors import ImpossibleTransition
from harness.domain.goal import AgentChoice
from harness.engine import actions, results
from harness.engine.results import result_to_document
from harness.engine.step import next_action

POLL_S = 0.2
CLOCK_STEP_S = 1.0
log = logging.getLogger(__name__)

Marker = tuple[int, int]
"""What tells whether a campaign moved: its version and how many results it has."""


def marker(campaign: Campaign) -> Marker:
    """Changes whenever anything was told about ``campaign``."""
    return campaign.version, EngineResult.objects.filter(campaign=campaign).count()


class Step(Enum):
    """What one look at a campaign led to."""

    MOVED = "moved"  # something was told; look again at once
    WAITS = "waits"  # for a job: look again soon
    SETTLED = "settled"  # for a person, or over: the runner may go


@dataclass
class CampaignRunner:
    """Holds the lease ``fence`` of campaign ``pk`` and moves it until it waits for a person or ends."""

    pk: int
    fence: int
    stopping: Callable[[], bool]
    wait: Callable[[float], object]
    agents: dict[AgentChoice, Any] = field(default_factory=dict)
    lost: threading.Event = field(default_factory=threading.Event)  # set by whoever renews the lease
    aside: threading.Event = field(default_factory=threading.Event)  # others wait: go on later
    asking: bool = False  # an agent thinks: nothing of this machine is used meanwhile
    version: int = 0  # of the campaign at the last look
    _halted: threading.Event = field(default_factory=threading.Event)
    seen: Marker | None = None  # how the campaign stood just before the last look
    _clock: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Until the campaign waits for a person, ends, or the runner is asked to stop."""
        while not (self.stopping() or self.lost.is_set() or self.aside.is_set()):
            try:
                step = self.step()
            except ImpossibleTransition as beaten:
                log.info("Campaign %s moved meanwhile, looking again: %s", self.pk, beaten)
                continue
            if step is Step.SETTLED:
                return
            if step is Step.WAITS:
                self.wait(POLL_S)

    def noticed(self, state: str, version: int) -> None:
        """The campaign as another thread sees it: a pause or stop since the last look ends an answer that comes in."""
        if state != CampaignState.RUNNING and version >= self.version:
            self._halted.set()

    def halted(self) -> bool:
        """Whether to stop an answer that comes in. Asked by the agent, from any thread, often."""
        return self.stopping() or self.lost.is_set() or self._halted.is_set()

    def step(self) -> Step:
        """One look and one deed.

        Raises:
            LeaseLost: another engine took over.
            ImpossibleTransition: a person was quicker; nothing was told.
        """
        campaign = Campaign.objects.select_related(
            "team", "slot__operator", "slot__hardware", "start_kernel", "started_by").get(pk=self.pk)
        if campaign.state not in CAMPAIGN_ACTIVE:
            return Step.SETTLED
        if is_background(campaign) and people_at_work():
            return Step.WAITS
        self.seen = marker(campaign)
        self.version = campaign.version
        self._halted.clear()
        state = services.engine_state(campaign)
        action = next_action(state)
        match action:
            case actions.EvaluateBaseline() | actions.Evaluate():
                return self._evaluate(campaign, state, action)
            case actions.AskAgent():
                return self._ask(campaign, state, action)
            case actions.TakeQueued():
                if self._spent_seconds(campaign, state):
                    return Step.MOVED
                self._tell(campaign, results.QueueTaken(action.round))
            case actions.AskSpotCheck():
                people.ask_spot_check(campaign=campaign, fence=self.fence, round_number=action.round)
            case actions.OpenReview():
                return self._open_review(campaign, state, action)
            case actions.ProposePlateau():
                self._tell(campaign, results.PlateauReached(action.cause))
            case actions.WaitForPerson():
                return self._wait_for_person(campaign)
            case _:
                return Step.SETTLED
        return Step.MOVED

    def _ask(self, campaign: Campaign, state: Any, action: actions.AskAgent) -> Step:
        if state.active_round is None and self._spent_seconds(campaign, state):
            return Step.MOVED
        if state.goal.agent.kind == ask.OUTSIDE:
            ask.wait_for_outside(campaign=campaign, fence=self.fence, action=action)
            return Step.SETTLED  # until a proposal is told from outside
        self.asking = True
        try:
            ask.ask_agent(campaign=campaign, fence=self.fence, state=state, action=action, agents=self.agents,
                          cancelled=self.halted)
        finally:
            self.asking = False
        return Step.MOVED

    def _evaluate(self, campaign: Campaign, state: Any, action: actions.EvaluateBaseline | actions.Evaluate) -> Step:
        number = action.round if isinstance(action, actions.Evaluate) else 0
        job = measure.round_job(campaign=campaign, state=state, action=action)
        if measure.is_open(job):
            outage = measure.outage(job)
            if outage is None:
                return Step.WAITS
            self._tell(campaign, results.Paused(outage, code="worker_outage"))
        elif job.verdict is not None:
            services.engine_tell_verdict(campaign=campaign, fence=self.fence, round_number=number, verdict=job.verdict)
        else:
            self._tell(campaign, results.InfrastructureFault(number, job.error or f"The job ended as {job.state}."))
        return Step.MOVED

    def _open_review(self, campaign: Campaign, state: Any, action: actions.OpenReview) -> Step:
        job = measure.final_job(campaign=campaign, state=state)
        if measure.is_open(job):
            return Step.WAITS if measure.outage(job) is None else Step.SETTLED
        people.open_review(campaign=campaign, fence=self.fence, state=state, action=action, verdict=job.verdict,
                           error=job.error)
        return Step.MOVED

    def _wait_for_person(self, campaign: Campaign) -> Step:
        """Where finishing is the only choice left (budget spent, roof reached) the default is taken."""
        if campaign.options == [str(actions.PlateauChoice.FINISH)]:
            self._tell(campaign, results.PlateauChosen(actions.PlateauChoice.FINISH))
            return Step.MOVED
        return Step.SETTLED

    def _spent_seconds(self, campaign: Campaign, state: Any) -> bool:
        """Tell the budget's clock between rounds; whether there was something to tell."""
        now = time.monotonic()
        if now - self._clock < CLOCK_STEP_S:
            return False
        spent, self._clock = state.seconds + now - self._clock, now
        self._tell(campaign, results.BudgetClock(round(spent, 1)))
        return True

    def _tell(self, campaign: Campaign, result: results.Result) -> api.EngineFacts:
        return services.engine_tell(campaign=campaign, document=result_to_document(result), fence=self.fence)
