"""Deciding: the one view through which a person approves, asks for changes, rejects or vetoes."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from apps.core.errors import AppError, NotFound
from apps.core.paging import SignedIn, number_in, page, see_other
from apps.reviews import services
from apps.reviews.models import ReviewRequest
from apps.reviews.screens.review import Attempt, review_context
from apps.reviews.selectors import request_for
from apps.teams import sessions

DONE = {
    "approve": "Your approval is recorded.",
    "request_changes": "Changes are requested; the agent gets your words.",
    "reject": "Rejected. The request is closed.",
    "veto": "Vetoed. This kernel does not come back without your words on top.",
    "comment": "Your comment is recorded.",
}


@page
@require_POST
@sensitive_post_parameters("password")
def decide(request: SignedIn, pk: int) -> HttpResponse:
    """Record a decision on the bytes that were shown; what is refused comes back with the text as typed."""
    review = request_for(request.user, pk)
    kind = request.POST.get("kind", "")
    text = request.POST.get("comment", "")
    try:
        record(request, review, kind, text)
    except NotFound:
        raise
    except AppError as error:
        again = request_for(request.user, pk)
        attempt = Attempt(text=text, refusal=error, ticked=request.POST.getlist("ticked"))
        return render(request, "reviews/review.html", review_context(request, again, attempt), status=error.status)
    messages.success(request, DONE[kind])
    return see_other(reverse("review", args=[pk]))


def record(request: SignedIn, review: ReviewRequest, kind: str, text: str) -> None:
    """Ask the services; a password in the form proves anew who decides."""
    if kind == "comment":
        services.thread_open(request=review, person=request.user, text=text)
        return
    if request.POST.get("password"):
        sessions.reauthenticate(request, password=request.POST["password"])
    version = number_in(request.POST.get("version", ""))
    services.review_decide(
        request=review,
        person=request.user,
        kind=kind,
        comment=text,
        shown_digest=request.POST.get("digest", ""),
        shown_version=-1 if version is None else version,
        reauthenticated_at=sessions.reauthenticated_at(request),
        session_hash=sessions.session_hash(request),
        ticked=request.POST.getlist("ticked"),
    )
