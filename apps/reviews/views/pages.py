"""The inbox and the review page."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.views.decorators.cache import never_cache

from apps.core.paging import SignedIn, page, show
from apps.reviews.choices import REQUEST_OPEN, RequestState
from apps.reviews.screens.inbox import row_of
from apps.reviews.screens.review import review_context
from apps.reviews.selectors import inbox_for, request_for, requests_for, spot_checks_for

PARTS = {"top": "reviews/parts/top.html", "gate": "reviews/parts/gate.html"}
PER_PAGE = 25


@page
def inbox(request: SignedIn) -> HttpResponse:
    """What waits for me, what waits for others, what was decided."""
    waiting = inbox_for(request.user)
    mine = {one.pk for one in waiting}
    others = [one for one in requests_for(request.user).filter(state__in=REQUEST_OPEN) if one.pk not in mine]
    closed = requests_for(request.user).exclude(state__in=REQUEST_OPEN).defer("verdict__document")
    state = request.GET.get("state", "")
    if state in RequestState.values:
        closed = closed.filter(state=state)
    pages = Paginator(closed, PER_PAGE).get_page(request.GET.get("page"))
    return show(
        request,
        "reviews/inbox.html",
        {
            "mine": [row_of(one, request.user) for one in waiting],
            "others": [row_of(one, request.user) for one in others],
            "pages": pages,
            "spot_checks": spot_checks_for(request.user),
            "state": state,
            "states": [choice for choice in RequestState.choices if choice[0] not in REQUEST_OPEN],
        },
    )


@never_cache
@page
def review_page(request: SignedIn, pk: int) -> HttpResponse:
    """May this become the champion?"""
    return show(request, "reviews/review.html", review_context(request, request_for(request.user, pk)), PARTS)
