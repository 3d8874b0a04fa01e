"""The list of campaigns."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpResponse

from apps.campaigns.choices import CampaignState
from apps.campaigns.screens import listing
from apps.core.current_team import current_team
from apps.core.paging import SignedIn, page, show
from apps.kernels.selectors import in_order
from apps.teams import policies

PER_PAGE = 25


@page
def campaigns(request: SignedIn) -> HttpResponse:
    """All campaigns of the person's teams, filtered by the address."""
    found = listing.light(request.user)
    state, operator, mine = (request.GET.get(key, "") for key in ("state", "operator", "mine"))
    if state in CampaignState.values:
        found = found.filter(state=state)
    if operator:
        found = found.filter(slot__operator__name=operator)
    if mine:
        found = found.filter(started_by=request.user)
    pages = Paginator(found, PER_PAGE).get_page(request.GET.get("page"))
    team = current_team(request)
    query = request.GET.copy()
    query.pop("page", None)
    return show(
        request,
        "campaigns/list.html",
        {
            "rows": listing.rows(pages.object_list),
            "pages": pages,
            "state": state,
            "operator": operator,
            "mine": mine,
            "states": CampaignState.choices,
            "query": query.urlencode(),
            "operators": in_order(
                set(listing.light(request.user).order_by().values_list("slot__operator__name", flat=True)),
                lambda name: name,
            ),
            "why_not": policies.may_run_campaigns(request.user, team) if team else "You are in no team yet.",
        },
        {"rows": "campaigns/parts/rows.html"},
    )
