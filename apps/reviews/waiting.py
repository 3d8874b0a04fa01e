"""How much waits for a person, for the top bar of every page: two queries, however much is open.

The inbox itself (``selectors.inbox_for``) asks the gate's own rules for each request; this count asks the same of the
stored columns, so a row that was tampered with may be counted and not be listed.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from apps.campaigns.choices import CAMPAIGN_ENDED
from apps.kernels.choices import ContributionKind
from apps.kernels.models import Contribution
from apps.reviews.choices import RequestState, SpotCheckState
from apps.reviews.models import Decision, ReviewRequest, SpotCheck
from apps.teams.choices import Role
from apps.teams.models import RoleGrant
from apps.teams.selectors import active_persons, is_person

HEAVY = Q(gate_tier="heavy") | Q(raised_tier="heavy")


def waiting_count(user: Any) -> int:
    """How many requests and spot checks wait for this person."""
    if not is_person(user):
        return 0
    grants = RoleGrant.objects.filter(membership__user=user, role=Role.REVIEWER, revoked_at__isnull=True)
    checks = SpotCheck.objects.filter(state=SpotCheckState.ASKED, campaign__team__in=grants.values("membership__team"))
    checks = checks.exclude(campaign__state__in=CAMPAIGN_ENDED)
    return _requests(user, grants).count() + checks.count()


def _requests(user: Any, grants: QuerySet[RoleGrant]) -> QuerySet[ReviewRequest]:
    """Open requests that this reviewer had no hand in and has not decided on."""
    if user.demo and not settings.DEMO:
        return ReviewRequest.objects.none()
    since_before = grants.filter(membership__team=OuterRef("team"), granted_at__lte=OuterRef("opened_at"))
    rows = ReviewRequest.objects.order_by().filter(
        Exists(since_before), ~Exists(Decision.objects.filter(request=OuterRef("pk"), user=user)),
        state__in=(RequestState.OPEN, RequestState.APPROVED),
    )
    hands = Contribution.objects.filter(user=user, kernel__normal_digest=OuterRef("kernel__normal_digest"))
    contributed = (
        Q(campaign__isnull=False, campaign__started_by=user)
        | Q(Exists(hands.exclude(kind=ContributionKind.COMMENTED)))
        | (HEAVY & Q(Exists(hands)))
    )
    if settings.SELF_REVIEW and active_persons() == 1:
        contributed &= HEAVY
    return rows.exclude(contributed)
