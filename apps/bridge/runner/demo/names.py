"""How the demo's own rows are recognised, and when they make way."""

from __future__ import annotations

from django.conf import settings

from apps.campaigns.models import Campaign
from apps.campaigns.selectors import at_work

TEAM = "inference-core"
CAMPAIGN_PREFIX = "Demo: "


def is_background(campaign: Campaign) -> bool:
    """Whether this is a campaign that the demo itself runs: campaigns of people go first."""
    return settings.DEMO and campaign.name.startswith(CAMPAIGN_PREFIX)


def people_at_work() -> bool:
    """Whether a campaign that a person started is running now."""
    return at_work().exclude(name__startswith=CAMPAIGN_PREFIX).exists()
