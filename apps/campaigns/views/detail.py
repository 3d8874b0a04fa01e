"""The live page of a campaign, and one round of it."""

from __future__ import annotations

from django.http import HttpResponse

from apps.campaigns.models import Campaign
from apps.campaigns.screens.detail import campaign_context, quick_context
from apps.campaigns.screens.round import round_context
from apps.campaigns.selectors import campaign_for, round_for
from apps.core.paging import SignedIn, page, show

PARTS = {
    "top": "campaigns/parts/top.html",
    "ideas": "campaigns/parts/ideas.html",
    "log": "campaigns/parts/log.html",
}
QUICK_PARTS = {"agent": "campaigns/parts/agent.html", "budget": "campaigns/parts/budget.html"}


def seen(request: SignedIn, pk: int) -> Campaign:
    """The campaign, if the person's teams may see it."""
    return campaign_for(request.user, pk)


@page
def campaign(request: SignedIn, pk: int) -> HttpResponse:
    """The whole page, or one live region of it. What follows every turn of a model is reckoned alone."""
    found = seen(request, pk)
    if request.GET.get("part") in QUICK_PARTS:
        return show(request, "campaigns/detail.html", quick_context(request, found), QUICK_PARTS)
    return show(request, "campaigns/detail.html", campaign_context(request, found), PARTS)


@page
def round_page(request: SignedIn, pk: int, number: int) -> HttpResponse:
    """One round: hypothesis, change, verdict, conclusion, the agent's account last."""
    found = seen(request, pk)
    return show(request, "campaigns/round.html", round_context(request, found, round_for(found, number)))
