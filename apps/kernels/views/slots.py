"""A slot: its champion, the whole history, and rolling back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from apps.campaigns.canary.selectors import drift_gap
from apps.campaigns.screens import listing
from apps.campaigns.screens.facts import fact_rows
from apps.core.current_team import current_team
from apps.core.errors import AppError, NotFound
from apps.core.paging import SignedIn, number_in, page, see_other, show
from apps.kernels import selectors
from apps.kernels.models import Promotion, Slot
from apps.kernels.screens.verdicts import sheet_of
from apps.reviews import services as reviews
from apps.reviews.choices import REQUEST_OPEN
from apps.reviews.models import ReviewRequest, Verification
from apps.reviews.rechecks import outdated
from apps.teams import policies, sessions

SLOT = ("operator", "backend", "hardware", "workload")


def seen(request: SignedIn, names: dict[str, str]) -> Slot:
    """The slot of the current team, or of the first team that has it."""
    team = current_team(request)
    try:
        return selectors.slot_for(request.user, team=team.slug if team else None, **names)
    except NotFound:
        return selectors.slot_for(request.user, **names)


@dataclass(slots=True)
class Attempt:
    """The rollback that a person just tried to order: shown again when it was not recorded."""

    reason: str = ""
    promotion: int | None = None
    refusal: AppError | None = None


@page
def slot_page(request: SignedIn, **names: str) -> HttpResponse:
    """Champion, history with rollbacks, open requests and campaigns of a slot."""
    return shown(request, seen(request, names), Attempt())


def shown(request: SignedIn, slot: Slot, attempt: Attempt) -> HttpResponse:
    """The page; a refused rollback stands in its form as it was typed."""
    champion = selectors.champion_of(slot)
    history = list(selectors.slot_history(slot).prefetch_related("request__decisions__user"))
    return show(
        request,
        "kernels/slot.html",
        {
            "slot": slot,
            "champion": champion,
            "sheet": sheet_of(champion.promotion.verdict) if champion else None,
            "history": [
                {"promotion": one, "approvers": approvers(one), "undone": undone(one, history)} for one in history
            ],
            "restorable": restorable(slot, history, champion),
            "why_not": policies.may_roll_back(request.user, slot.team),
            "requests": ReviewRequest.objects.filter(slot=slot, state__in=REQUEST_OPEN).select_related("kernel"),
            "again": outdated(champion) if champion else None,
            "drift": drift_gap(slot.hardware.name),
            "verifying": Verification.objects.filter(slot=slot, state="running").select_related("by").first(),
            "rows": listing.rows(listing.light(request.user).filter(slot=slot)[:10]),
            "device": fact_rows(slot.hardware.facts),
            "fresh": sessions.is_fresh(sessions.reauthenticated_at(request)),
            "attempt": attempt,
        },
        status=attempt.refusal.status if attempt.refusal else 200,
    )


def approvers(promotion: Promotion) -> list[str]:
    """Names of those whose approval stood."""
    if promotion.request is None:
        return []
    return [decision.user.name for decision in promotion.request.decisions.all() if decision.kind == "approve"]


def undone(promotion: Promotion, history: list[Promotion]) -> bool:
    """Whether the next promotion of the slot was a rollback away from this one."""
    place = history.index(promotion)
    return place > 0 and history[place - 1].kind == "rollback" and promotion.kind != "rollback"


def restorable(slot: Slot, history: list[Promotion], champion: Any) -> list[Promotion]:
    """Earlier promotions whose kernel could come back, newest of each kernel first. The service has the last word."""
    found: dict[str, Promotion] = {}
    for one in history:
        if champion is not None and one.kernel_id == champion.kernel_id and slot.state == "champion":
            continue
        found.setdefault(one.kernel_id, one)
    return list(found.values())


@page
@require_POST
@sensitive_post_parameters("password")
def roll_back(request: SignedIn, **names: str) -> HttpResponse:
    """Order a rollback: re-verification first, then the promotion of kind rollback. A password in the form proves anew
    who orders it; what is refused comes back with the text as typed."""
    slot = seen(request, names)
    promotion = Promotion.objects.filter(slot=slot, pk=number_in(request.POST.get("promotion", "")) or 0).first()
    if promotion is None:
        raise NotFound("This slot never had such a promotion.")
    reason = request.POST.get("reason", "")
    try:
        if request.POST.get("password"):
            sessions.reauthenticate(request, password=request.POST["password"])
        reviews.rollback_start(
            slot=slot, promotion=promotion, person=request.user, reason=reason,
            reauthenticated_at=sessions.reauthenticated_at(request), session_hash=sessions.session_hash(request),
        )
    except AppError as error:
        return shown(request, slot, Attempt(reason, promotion.pk, error))
    messages.success(request, "The rollback is ordered: the kernel is verified once more, then it becomes champion.")
    return see_other(reverse("slot", kwargs=names))
