"""Turning to people: spot checks while a campaign runs, a review of what it found. Each is asked once."""

from __future__ import annotations

import logging

from apps.campaigns import services
from apps.campaigns.models import Campaign, Round
from apps.core.errors import AppError
from apps.kernels.models import Kernel, Verdict
from apps.reviews.models import ReviewRequest, SpotCheck
from apps.reviews.services import review_open, spot_check_ask
from harness.engine import actions, results
from harness.engine.results import result_to_document
from harness.engine.state import CampaignState

log = logging.getLogger(__name__)


def ask_spot_check(*, campaign: Campaign, fence: int, round_number: int) -> None:
    """R17: ask a reviewer to look at ``round_number``, then tell the engine; killed in between, only the telling is
    repeated."""
    row = Round.objects.get(campaign=campaign, number=round_number)
    if not SpotCheck.objects.filter(round=row).exists():
        spot_check_ask(round=row)
    _tell(campaign, fence, results.SpotCheckAsked(round_number))


def open_review(*, campaign: Campaign, fence: int, state: CampaignState, action: actions.OpenReview,
                verdict: Verdict | None, error: str) -> None:
    """Open a request for the campaign's best kernel when its fresh measurement supports one, then tell the engine.

    Without that support no request is opened: a reviewer's time is for kernels that are right and faster now.
    """
    kernel = Kernel.objects.get(pk=action.kernel.digest)
    asked = ReviewRequest.objects.filter(campaign=campaign, kernel=kernel).exists()
    if not asked and verdict is not None and verdict.outcome == "passed" and verdict.comparison == "faster":
        try:
            review_open(campaign=campaign, kernel=kernel, verdict=verdict, because=state.cause)
        except AppError as refusal:
            log.warning("Campaign %s opens no review of %s: %s", campaign.pk, kernel.short, refusal.text)
    elif not asked:
        found = f"{verdict.outcome}, {verdict.comparison}" if verdict else error
        log.info("Campaign %s opens no review of %s: measured afresh it is %s.", campaign.pk, kernel.short, found)
    _tell(campaign, fence, results.ReviewOpened(action.round, action.kernel.digest))


def _tell(campaign: Campaign, fence: int, result: results.Result) -> None:
    services.engine_tell(campaign=campaign, document=result_to_document(result), fence=fence)
