"""Finished campaigns whose best kernel nobody asked a review for yet: somebody was quicker than the last measurement.

A person may finish a campaign while its final paired measurement runs. The campaign is over then and no runner holds
it, but what it found is measured and put to review all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db.models import F

from apps.bridge.runner import measure, people
from apps.bridge.runner.demo.names import is_background, people_at_work
from apps.campaigns import services
from apps.campaigns.choices import CampaignState
from apps.campaigns.models import Campaign, EngineResult
from harness.engine import actions
from harness.engine.step import next_action


@dataclass
class ClosingErrand:
    """Looks at finished campaigns that found something; each is settled once."""

    _settled: set[int] = field(default_factory=set)

    def __call__(self) -> None:
        """Go on with each campaign that still needs its measurement or its request."""
        rows = Campaign.objects.filter(state=CampaignState.FINISHED, imported_from="").exclude(
            incumbent=None).exclude(incumbent=F("start_kernel")).exclude(pk__in=self._settled)
        for campaign in rows.select_related("team", "slot__operator", "slot__hardware", "start_kernel", "started_by"):
            if asked(campaign) or self._close(campaign):
                self._settled.add(campaign.pk)

    @staticmethod
    def _close(campaign: Campaign) -> bool:
        """Whether nothing is left to do for ``campaign``."""
        state = services.engine_state(campaign)
        action = next_action(state)
        if not isinstance(action, actions.OpenReview):
            return True
        if is_background(campaign) and people_at_work():
            return False
        job = measure.final_job(campaign=campaign, state=state)
        if measure.is_open(job):
            return False
        people.open_review(campaign=campaign, fence=None, state=state, action=action, verdict=job.verdict,
                           error=job.error)
        return True


def asked(campaign: Campaign) -> bool:
    """Whether the campaign's best kernel was put to review, or found not to be worth one."""
    return EngineResult.objects.filter(
        campaign=campaign, kind="ReviewOpened", document__data__kernel=campaign.incumbent_id).exists()
