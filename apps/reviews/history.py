"""Whether the champions that stand are carried by approvals that were really given.

Asked again from sealed decisions, because a promotion could have been written while somebody who owns the database
had its triggers switched off. One that nothing carries stops promotions and is not handed out.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from apps.bridge import api
from apps.kernels.choices import ContributionKind, PromotionKind, SlotState
from apps.kernels.models import Champion, Contribution, Promotion
from apps.reviews.binding import normal_digests
from apps.reviews.choices import DecisionKind
from apps.reviews.models import Decision, ReviewRequest
from apps.reviews.policies import FLOORS, starters
from apps.reviews.seals import is_sealed
from apps.teams.choices import Role


def uncarried(champions: QuerySet[Champion] | None = None) -> list[str]:
    """A sentence for each standing champion that no approval carries; empty is the normal state."""
    rows = Champion.objects.all() if champions is None else champions
    standing = rows.filter(slot__state=SlotState.CHAMPION).select_related(
        "slot__operator", "slot__hardware", "promotion__kernel", "promotion__request__campaign", "promotion__restores"
    )
    return [
        f"The champion of slot {row.slot_id} is carried by no valid approval: {problem} Somebody wrote to the database "
        "past its guards. Roll back to an approved kernel or empty the slot, and find out who."
        for row in standing if (problem := promotion_problem(row.promotion)) is not None
    ]


def promotion_problem(promotion: Promotion) -> str | None:
    """Why a promotion is not carried by approvals as it should be; ``None`` when it is."""
    seen: set[int] = set()
    while promotion.kind == PromotionKind.ROLLBACK:
        if promotion.restores is None or promotion.pk in seen or promotion.restores.kernel_id != promotion.kernel_id:
            return "the rollback restores nothing that was promoted before."
        seen.add(promotion.pk)
        promotion = promotion.restores
    request = promotion.request
    if request is None or request.kernel_id != promotion.kernel_id or request.slot_id != promotion.slot_id:
        return "there is no review request of this kernel and slot."
    if promotion.kind == PromotionKind.AUTO:
        light = promotion.gate_tier in ("none", "light") and request.gate_tier in ("none", "light")
        return None if light and request.auto else "it went by itself and is no light change."
    approvals = _approvals(promotion, request)
    tier = max([promotion.gate_tier, request.gate_tier, *(one.gate_tier for one in approvals)], key=api.rank)
    if len(approvals) < FLOORS[tier]:
        return f"{len(approvals)} of at least {FLOORS[tier]} for a {tier} change."
    return None


def _approvals(promotion: Promotion, request: ReviewRequest) -> list[Decision]:
    """The last word of each person before the promotion, where it is a sealed approval by somebody entitled then."""
    decisions = request.decisions.filter(at__lte=promotion.at).select_related("grant__membership").order_by("id")
    last = {one.user_id: one for one in decisions if is_sealed(one)}
    hands = _hands(promotion, request, last.values())
    return [
        one for one in last.values()
        if one.kind == DecisionKind.APPROVE and one.kernel_digest == promotion.kernel_id
        and one.grant.role == Role.REVIEWER and one.grant.membership.user_id == one.user_id
        and one.grant.membership.team_id == request.team_id and one.grant.granted_at <= request.opened_at
        and (one.grant.revoked_at is None or one.grant.revoked_at > promotion.at)
        and (one.self_review or one.user_id not in hands)
    ]


def _hands(promotion: Promotion, request: ReviewRequest, decisions: Iterable[Decision]) -> set[int]:
    """Who of these had a hand in the kernel by then."""
    heavy = any(one.gate_tier == "heavy" for one in decisions) or promotion.gate_tier == "heavy"
    rows = Contribution.objects.filter(kernel__normal_digest__in=normal_digests(promotion.kernel), at__lte=promotion.at)
    if not heavy:
        rows = rows.exclude(kind=ContributionKind.COMMENTED)
    started = starters(request.campaign) if request.campaign is not None else set()
    return set(rows.values_list("user_id", flat=True)) | started
