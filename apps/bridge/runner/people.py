"""Turning to people: spot checks while a campaign runs, a review of what it found. Each is asked once."""

from __future__ import annotations

import logging

from apps.campaigns import services
from apps.campaigns.models import Campaign
from apps.core.errors import AppError
from apps.kernels.models import Kernel, Verdict
from apps.reviews.models import ReviewRequest
from apps.reviews.services import review_open, spot_check_ask
from harness.engine import actions, results
from harness.engine.results import result_to_document
from harness.engine.state import CampaignState

log = logging.getLogger(__name__)


def ask_spot_check(*, campaign: Campaign, fence: int, round_number: int) -> None:
    """R17: ask a reviewer to look at ``round_number``; asked and told in one transaction."""
    spot_check_ask(campaign=campaign, round_number=round_number, fence=fence)


def open_review(*, campaign: Campaign, fence: int | None, state: CampaignState, action: actions.OpenReview,
                verdict: Verdict | None, error: str) -> None:
    """Open a request for the campaign's best kernel when its fresh measurement supports one (the service tells the
    engine in the same transaction); otherwise tell the engine that this kernel was dealt with.

    Without that support no request is opened: a reviewer's time is for kernels that are right and faster now.
    """
    kernel = Kernel.objects.get(pk=action.kernel.digest)
    asked = ReviewRequest.objects.filter(campaign=campaign, kernel=kernel).exists()
    if not asked and verdict is not None and verdict.outcome == "passed" and verdict.comparison == "faster":
        try:
            review_open(campaign=campaign, kernel=kernel, verdict=verdict, because=state.cause)
        except AppError as refusal:
            log.warning("Campaign %s opens no review of %s: %s", campaign.pk, kernel.short, refusal.text)
        else:
            return
    elif not asked:
        found = f"{verdict.outcome}, {verdict.comparison}" if verdict else error
        log.info("Campaign %s opens no review of %s: measured afresh it is %s.", campaign.pk, kernel.short, found)
    document = result_to_document(results.ReviewOpened(action.round, action.kernel.digest))
    services.engine_tell(campaign=campaign, document=document, fence=fence)
