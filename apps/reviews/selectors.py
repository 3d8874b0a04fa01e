"""Reading reviews: the inbox, one request, its gate. Other teams' requests are ``NotFound``."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from apps.bridge import api
from apps.campaigns.canary.selectors import open_drifts
from apps.campaigns.choices import CAMPAIGN_ENDED
from apps.campaigns.jobs.selectors import devices_not_ready
from apps.core.errors import NotFound
from apps.kernels.models import Kernel
from apps.reviews import history, policies, triggers
from apps.reviews.choices import REQUEST_OPEN, DecisionKind, RequestState, SpotCheckState
from apps.reviews.gate import (
    Requirement,
    counted_approvals,
    regressions_of,
    requirements,
    standing_decisions,
    standing_vetoes,
    why_not,
)
from apps.reviews.models import Decision, ReviewRequest, SpotCheck, Thread, Verification, Veto
from apps.reviews.waiting import waiting_count
from apps.teams.models import Team
from apps.teams.policies import may_review
from apps.teams.selectors import teams_of

RELATED = ("team", "slot__team", "slot__operator", "slot__hardware", "campaign__team", "campaign__started_by", "kernel",
           "base", "verdict", "verify_job__verdict", "verify_verdict", "opened_by", "raised_by", "answers")


def requests_for(user: Any) -> QuerySet[ReviewRequest]:
    """Requests of the user's teams, newest first."""
    return ReviewRequest.objects.filter(team__in=teams_of(user)).select_related(*RELATED)


def request_for(user: Any, pk: int) -> ReviewRequest:
    """A request of the user's teams.

    Raises:
        NotFound: unknown or another team's.
    """
    row = requests_for(user).filter(pk=pk).first()
    if row is None:
        raise NotFound("There is no such review request in your teams.")
    return row


def gate_requirements(request: ReviewRequest) -> list[Requirement]:
    """Requirements with one sentence each, in the order shown; the promoting transaction uses the same list."""
    return requirements(request)


def inbox_for(user: Any) -> list[ReviewRequest]:
    """Open requests on which this person may decide now and has not yet, the highest tier and oldest first."""
    waiting = []
    for request in requests_for(user).filter(state__in=(RequestState.OPEN, RequestState.APPROVED)).order_by("id"):
        mine = {decision.user_id for decision in standing_decisions(request)}
        if user.pk not in mine and why_not(user, request, DecisionKind.APPROVE) is None:
            waiting.append(request)
    return sorted(waiting, key=lambda request: (-api.rank(policies.effective_tier(request)), request.pk))


def spot_checks_for(user: Any) -> list[SpotCheck]:
    """Unanswered spot checks of the teams this person reviews for, while there is a campaign that reads the answer."""
    rows = SpotCheck.objects.filter(state=SpotCheckState.ASKED, campaign__team__in=teams_of(user)).exclude(
        campaign__state__in=CAMPAIGN_ENDED
    ).select_related("campaign__team", "campaign__slot__operator", "campaign__slot__hardware", "round")
    return [check for check in rows if may_review(user, check.campaign.team) is None]


def open_requests(team: Team) -> QuerySet[ReviewRequest]:
    """Requests of a team that count as open."""
    return ReviewRequest.objects.filter(team=team, state__in=REQUEST_OPEN).select_related(*RELATED)


def decisions_of(request: ReviewRequest) -> QuerySet[Decision]:
    """Every decision in order, superseded ones included."""
    return request.decisions.select_related("user", "grant").order_by("id")


def approvals_of(request: ReviewRequest) -> list[Decision]:
    """Approvals that count now."""
    return counted_approvals(request)


def contributors_of(request: ReviewRequest) -> dict[int, str]:
    """Ids of people who may not approve, with the reason in words."""
    return policies.contributors(request)


def threads_of(request: ReviewRequest) -> QuerySet[Thread]:
    """Discussions with their comments."""
    return request.threads.select_related("opened_by", "resolved_by", "kernel").prefetch_related("comments__author")


def vetoes_on(team: Team, kernel: Kernel) -> QuerySet[Veto]:
    """All vetoes on a kernel's normalised form, lifted ones included: shown on top of a later request."""
    return Veto.objects.filter(team=team, normal_digest=kernel.normal_digest).select_related(
        "by", "decision__request", "lift__by"
    ).order_by("id")


def verifications_of(slot: Any) -> QuerySet[Verification]:
    """Rollbacks and rechecks of a slot, newest first."""
    return Verification.objects.filter(slot=slot).select_related("kernel", "by", "job__verdict")


def promotions_blocked() -> list[str]:
    """Why no promotion may happen now, in sentences; empty when everything that promotions need is in place."""
    gone = triggers.missing()
    guards = [f"{len(gone)} of the database's own guards are missing or altered; run `python manage.py migrate`."]
    drifts = [drift.text for drift in open_drifts()]
    return [*(guards if gone else []), *history.uncarried(), *devices_not_ready(), *drifts]


__all__ = [
    "Requirement", "approvals_of", "contributors_of", "decisions_of", "gate_requirements", "inbox_for",
    "open_requests", "promotions_blocked", "regressions_of", "request_for", "requests_for", "spot_checks_for",
    "standing_vetoes", "threads_of", "verifications_of", "vetoes_on", "waiting_count", "why_not",
]
