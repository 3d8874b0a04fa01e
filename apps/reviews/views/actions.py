"""Talking about a request, and what may be done with it besides deciding."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.core.errors import Invalid, NotFound
from apps.core.paging import SignedIn, act, number_in, page
from apps.reviews import services
from apps.reviews.models import Thread, Veto
from apps.reviews.selectors import request_for
from apps.teams.selectors import teams_of


def address(pk: int, anchor: str = "") -> str:
    """The review page, at an anchor."""
    return reverse("review", args=[pk]) + (f"#{anchor}" if anchor else "")


@page
@require_POST
def comment(request: SignedIn, pk: int) -> HttpResponse:
    """Open a thread, on a line of one side or on the whole."""
    review = request_for(request.user, pk)
    text, line = request.POST.get("text", ""), request.POST.get("line", "").strip()

    def open_thread() -> None:
        number = number_in(line)
        if line and number is None:
            raise Invalid(f"'{line[:40]}' is no line number.", key="line")
        kernel = (review.base if request.POST.get("side") == "old" else review.kernel) if line else None
        services.thread_open(
            request=review,
            person=request.user,
            text=text,
            kernel=kernel,
            line=number,
            blocking=bool(request.POST.get("blocking")),
        )

    place = number_in(line)
    return act(request, "Your comment is recorded.", open_thread, to=address(pk, f"L{place}" if place else "threads"))


def thread_seen(request: SignedIn, pk: int) -> Thread:
    """A thread of the person's teams."""
    row = (
        Thread.objects.select_related("request__team", "opened_by")
        .filter(pk=pk, request__team__in=teams_of(request.user))
        .first()
    )
    if row is None:
        raise NotFound("There is no such thread in your teams.")
    return row


@page
@require_POST
def reply(request: SignedIn, pk: int) -> HttpResponse:
    """Answer in a thread."""
    thread = thread_seen(request, pk)
    return act(
        request,
        "Your reply is recorded.",
        lambda: services.thread_reply(thread=thread, person=request.user, text=request.POST.get("text", "")),
        to=address(thread.request_id, f"thread-{pk}"),
    )


@page
@require_POST
def resolve(request: SignedIn, pk: int) -> HttpResponse:
    """Resolve a thread. Resolving does not approve."""
    thread = thread_seen(request, pk)
    return act(
        request,
        "The thread is resolved.",
        lambda: services.thread_resolve(thread=thread, person=request.user),
        to=address(thread.request_id, f"thread-{pk}"),
    )


@page
@require_POST
def raise_tier(request: SignedIn, pk: int) -> HttpResponse:
    """Ask for more than the computed tier does."""
    review = request_for(request.user, pk)
    tier = request.POST.get("tier", "")
    return act(
        request,
        f"The tier is {tier} now.",
        lambda: services.review_raise_tier(
            request=review, person=request.user, tier=tier, reason=request.POST.get("reason", "")
        ),
        to=address(pk),
    )


@page
@require_POST
def withdraw(request: SignedIn, pk: int) -> HttpResponse:
    """Take the request back."""
    review = request_for(request.user, pk)
    return act(
        request,
        f"{review} is withdrawn.",
        lambda: services.review_withdraw(request=review, person=request.user, reason=request.POST.get("reason", "")),
        to=address(pk),
    )


@page
@require_POST
def seen(request: SignedIn, pk: int) -> HttpResponse:
    """Mark a piece of evidence as seen."""
    review = request_for(request.user, pk)
    item = request.POST.get("item", "")
    return act(
        request,
        f"{item.capitalize()} is marked as seen by you.",
        lambda: services.viewed_mark(request=review, person=request.user, item=item),
        to=address(pk, item),
    )


@page
@require_POST
def lift(request: SignedIn, pk: int) -> HttpResponse:
    """Lift a veto with a reason; approves nothing."""
    veto = (
        Veto.objects.select_related("decision__request", "team", "by")
        .filter(pk=pk, team__in=teams_of(request.user))
        .first()
    )
    if veto is None:
        raise NotFound("There is no such veto in your teams.")
    return act(
        request,
        "The veto is lifted. It approves nothing; the kernel may be submitted again.",
        lambda: services.veto_lift(veto=veto, person=request.user, reason=request.POST.get("reason", "")),
        to=address(veto.decision.request_id),
    )
