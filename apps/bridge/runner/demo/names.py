"""How the demo's own rows are recognised."""

from __future__ import annotations

from django.conf import settings

from apps.campaigns.models import Campaign

TEAM = "inference-core"
CAMPAIGN_PREFIX = "Demo: "


def is_background(campaign: Campaign) -> bool:
    """Whether this is a campaign that the demo itself runs: campaigns of people go first."""
    return settings.DEMO and campaign.name.startswith(CAMPAIGN_PREFIX)
