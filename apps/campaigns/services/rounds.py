"""What the engine loop writes about rounds beyond results: that one began, and the agent's record of its turns."""

from __future__ import annotations

from typing import Any

from apps.campaigns.models import Campaign, Round
from apps.campaigns.services.projection import open_round
from apps.core.errors import LeaseLost
from apps.stream.services import recording


def round_start(*, campaign: Campaign, fence: int, number: int) -> Round:
    """Open round ``number`` (state ``thinking``) before the agent is asked; idempotent.

    Raises:
        LeaseLost: another engine took over the campaign.
    """
    with recording(campaign.stream) as log:
        campaign.refresh_from_db()
        if campaign.fence != fence:
            raise LeaseLost(f"Another engine took over {campaign}; round {number} was not begun by this one.")
        return open_round(campaign, number, log)


def round_trace_set(*, row: Round, trace: dict[str, Any]) -> None:
    """Keep the agent's own record of its turns beside the round; shown, never interpreted."""
    Round.objects.filter(pk=row.pk).update(trace=trace)
