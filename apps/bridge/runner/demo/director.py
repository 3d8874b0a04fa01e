"""Running the demo in the background: campaigns one after the other, then a first approval by a scripted person.

Looked at once a second by the engine process. Everything goes through the ordinary services and views; everything
measured is measured here. It makes way whenever a person's campaign runs.
"""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass

from apps.bridge import api
from apps.bridge.runner.closing import asked
from apps.bridge.runner.demo.browser import Refusal, approve
from apps.bridge.runner.demo.names import CAMPAIGN_PREFIX, people_at_work
from apps.bridge.runner.demo.people import demo_team
from apps.campaigns.choices import CAMPAIGN_ENDED, CampaignState
from apps.campaigns.models import Campaign
from apps.campaigns.services import campaign_create, campaign_start, plateau_choose
from apps.core.errors import AppError
from apps.reviews.models import ReviewRequest
from apps.teams.models import Team, User
from apps.teams.sessions import DEMO_PASSWORD

RETRY_S = 30.0
PATIENCE = 5
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Scene:
    """One campaign of the demo, there to end with a request of ``tier``; run again up to ``runs`` times while it does
    not, because only measurements decide. ``approver`` gives that request its first approval."""

    title: str
    operator: str
    tier: str
    rounds: int
    starter: str
    approver: str | None = None
    runs: int = 2

    def names(self) -> list[str]:
        """Names of its campaigns, in the order in which they are run."""
        return [CAMPAIGN_PREFIX + self.title + (f", run {number}" if number > 1 else "")
                for number in range(1, self.runs + 1)]


SCENES = (
    Scene("softmax, medium", "softmax", "medium", 4, "emma"),
    Scene("decode attention, heavy", "decode_attention", "heavy", 4, "erik", approver="rosa"),
)


@dataclass
class Director:
    """Looked at once a second. Remembers only when the scripted approval may be tried again."""

    _next_try: float = 0.0
    _tries: int = 0

    def __call__(self) -> None:
        """Do the next thing that the demo lacks, if its time has come."""
        team = demo_team()
        if team is None:
            return
        for scene in SCENES:
            if not self._played(team, scene):
                return

    def _played(self, team: Team, scene: Scene) -> bool:
        """Whether nothing is left to do for ``scene``; otherwise its next step was taken."""
        for name in scene.names():
            campaign = Campaign.objects.filter(team=team, name=name).first()
            if campaign is None or campaign.state == CampaignState.DRAFT:
                if not people_at_work():
                    _begin(team, scene, campaign, name)
                return False
            if campaign.state not in CAMPAIGN_ENDED:
                _finish_plateau(campaign, scene)
                return False
            if campaign.incumbent_id != campaign.start_kernel_id and not asked(campaign):
                return False  # its last measurement runs
            requests = ReviewRequest.objects.filter(campaign=campaign, gate_tier=scene.tier)
            if requests.exists():
                if scene.approver is not None:
                    self._first_approval(requests.filter(state="open", decisions=None).first(), scene.approver)
                return True
        return True

    def _first_approval(self, request: ReviewRequest | None, approver: str) -> None:
        """One approval of a request that nobody decided yet, through the decision view like anybody's."""
        url = os.environ.get("KERNELOPT_SITE_URL")
        if request is None or not url or time.monotonic() < self._next_try or self._tries >= PATIENCE:
            return
        self._next_try = time.monotonic() + RETRY_S
        self._tries += 1
        try:
            approve(site=url, username=approver, password=DEMO_PASSWORD, review=request.pk,
                    comment="The demo's scripted first approval, one of the two that heavy code needs.")
        except (Refusal, OSError) as error:
            log.warning("Demo: the first approval of %s was not given: %s", request, error)
        else:
            log.info("Demo: %s approved %s through the decision view.", approver, request)


def _begin(team: Team, scene: Scene, campaign: Campaign | None, name: str) -> None:
    person = User.objects.get(username=scene.starter)
    if campaign is None:
        goal = api.goal_default(scene.operator, "numba", api.hardware_here(), "llm")
        goal["grant"] = scene.tier
        goal["budget"]["rounds"] = scene.rounds
        campaign = campaign_create(team=team, person=person, goal=goal, name=name)
    campaign_start(campaign=campaign, person=person)


def _finish_plateau(campaign: Campaign, scene: Scene) -> None:
    """On a plateau the starter takes the default, once the best kernel was measured and put to review."""
    if campaign.state == "plateau" and (campaign.incumbent_id == campaign.start_kernel_id or asked(campaign)):
        try:
            plateau_choose(campaign=campaign, person=User.objects.get(username=scene.starter), choice="finish")
        except AppError as error:
            log.info("Demo: %s", error.text)

