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
from apps.campaigns.choices import CAMPAIGN_ENDED
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
    """One campaign of the demo. ``approver`` gives the first approval to its request, where it is heavy."""

    name: str
    operator: str
    grant: str
    rounds: int
    starter: str
    approver: str | None = None


SCENES = (
    Scene(CAMPAIGN_PREFIX + "softmax, medium", "softmax", "medium", 4, "emma"),
    Scene(CAMPAIGN_PREFIX + "decode attention, heavy", "decode_attention", "heavy", 4, "erik", approver="rosa"),
)
_next_try = 0.0
_tries = 0


def direct() -> None:
    """Do the next thing that the demo lacks, if its time has come."""
    team = demo_team()
    if team is None:
        return
    for scene in SCENES:
        campaign = Campaign.objects.filter(team=team, name=scene.name).first()
        if campaign is None or campaign.state == "draft":
            if not people_at_work():
                _begin(team, scene, campaign)
            return
        if campaign.state not in CAMPAIGN_ENDED:
            _finish_plateau(campaign, scene)
            return
        if scene.approver is not None:
            _first_approval(campaign, scene.approver)


def _begin(team: Team, scene: Scene, campaign: Campaign | None) -> None:
    person = User.objects.get(username=scene.starter)
    if campaign is None:
        goal = api.goal_default(scene.operator, "numba", api.hardware_here(), "llm")
        goal["grant"] = scene.grant
        goal["budget"]["rounds"] = scene.rounds
        campaign = campaign_create(team=team, person=person, goal=goal, name=scene.name)
    campaign_start(campaign=campaign, person=person)


def _finish_plateau(campaign: Campaign, scene: Scene) -> None:
    """On a plateau the starter takes the default, once the best kernel was measured and put to review."""
    if campaign.state == "plateau" and (campaign.incumbent_id == campaign.start_kernel_id or asked(campaign)):
        try:
            plateau_choose(campaign=campaign, person=User.objects.get(username=scene.starter), choice="finish")
        except AppError as error:
            log.info("Demo: %s", error.text)


def _first_approval(campaign: Campaign, approver: str) -> None:
    """One approval of a heavy request that nobody decided yet, through the decision view like anybody's."""
    global _next_try, _tries
    request = ReviewRequest.objects.filter(campaign=campaign, state="open", gate_tier="heavy", decisions=None).first()
    url = os.environ.get("KERNELOPT_SITE_URL")
    if request is None or not url or time.monotonic() < _next_try or _tries >= PATIENCE:
        return
    _next_try = time.monotonic() + RETRY_S
    _tries += 1
    try:
        approve(site=url, username=approver, password=DEMO_PASSWORD, review=request.pk,
                comment="The demo's scripted first approval, one of the two that heavy code needs.")
    except (Refusal, OSError) as error:
        log.warning("Demo: the first approval of %s was not given: %s", request, error)
    else:
        log.info("Demo: %s approved %s through the decision view.", approver, request)
