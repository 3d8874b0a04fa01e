"""Who may decide on a request (DESIGN section 8). ``None`` is allowed; otherwise a sentence says why not, who may."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from apps.bridge import api
from apps.campaigns.choices import STARTING
from apps.campaigns.models import Campaign, Influence
from apps.kernels.choices import ContributionKind
from apps.kernels.models import Contribution
from apps.reviews.binding import normal_digests
from apps.reviews.choices import REQUEST_OPEN, DecisionKind, RequestState
from apps.reviews.models import ReviewRequest, Veto
from apps.teams import policies as team_policies
from apps.teams.models import Team, User
from apps.teams.selectors import active_persons, is_person, reviewer_grant, reviewers_of, roles_of

FLOORS = {"none": 1, "light": 1, "medium": 1, "heavy": 2}
"""Least distinct approvals per gate tier. Constants: policy may raise them, nothing lowers them."""


def required_approvals(team: Team, tier: str) -> int:
    """What the floors and the team's policy ask for."""
    policy = {"light": team.approvals_light, "medium": team.approvals_medium, "heavy": team.approvals_heavy}
    return max(FLOORS[tier], policy.get(tier, FLOORS[tier]))


def effective_tier(request: ReviewRequest) -> str:
    """The computed gate tier, or the higher one that a reviewer raised it to."""
    return max(request.gate_tier, request.raised_tier or "none", key=api.rank)


def contributors(request: ReviewRequest) -> dict[int, str]:
    """People who may not approve, with the reason in words. A comment the kernel was built from counts for heavy.

    Asked by normalised tree and in whichever team: neither renaming a local nor the way through another team of the
    same person washes a hand off a kernel.
    """
    reasons: dict[int, str] = {}
    rows = Contribution.objects.filter(
        kernel__normal_digest__in=normal_digests(request.kernel)
    ).order_by("id")
    heavy = effective_tier(request) == "heavy"
    for row in rows:
        if row.kind == ContributionKind.COMMENTED and not heavy:
            continue
        reasons.setdefault(row.user_id, row.get_kind_display())
    if request.campaign is not None:
        for starter in starters(request.campaign):
            reasons[starter] = f"started {request.campaign}"
    return reasons


def starters(campaign: Campaign) -> set[int]:
    """Who made the campaign, who started it, and who made the token that did."""
    others = Influence.objects.filter(campaign=campaign, source__in=STARTING).values_list("user_id", flat=True)
    return {campaign.started_by_id, *others}


def self_review_allowed(user: Any, request: ReviewRequest) -> bool:
    """The server setting, only while the installation has exactly one active person, never for heavy."""
    return bool(
        settings.SELF_REVIEW and is_person(user) and effective_tier(request) != "heavy" and active_persons() == 1
    )


def eligible(request: ReviewRequest) -> list[User]:
    """Who may decide on this request now: reviewers since before it opened who are no contributors."""
    kept_out = contributors(request)
    return [
        person for person in reviewers_of(request.team)
        if reviewer_grant(person, request.team, before=request.opened_at) is not None
        and (settings.DEMO or not person.demo)
        and (person.pk not in kept_out or self_review_allowed(person, request))
    ]


def _others(user: Any, request: ReviewRequest) -> str:
    names = [person.name for person in eligible(request) if person != user]
    if not names:
        return "Nobody else in the team may at present; a maintainer can make someone a reviewer for later requests."
    return f"{' and '.join([', '.join(names[:-1]), names[-1]] if len(names) > 1 else names)} may."


def may_decide(user: Any, request: ReviewRequest, kind: str) -> str | None:
    """Approve, request changes, reject or veto."""
    why = team_policies.may_review(user, request.team)
    if why:
        return why
    if reviewer_grant(user, request.team, before=request.opened_at) is None:
        return (f"You became a reviewer after {request} opened, so your decision does not count for it. "
                + _others(user, request))
    reason = contributors(request).get(user.pk)
    if reason is not None and not self_review_allowed(user, request):
        if settings.SELF_REVIEW and effective_tier(request) == "heavy":
            return "Self-review never covers a heavy change; two other people must approve."
        return f"You {reason}, so you are a contributor. {_others(user, request)}"
    if request.state not in REQUEST_OPEN:
        return f"{request} is {request.get_state_display()}: nothing is decided on it any more."
    if request.state == RequestState.VERIFYING and kind != DecisionKind.VETO:
        return f"{request} is being verified; only a veto stops it now."
    return None


def may_raise_tier(user: Any, request: ReviewRequest, tier: str) -> str | None:
    """A reviewer may raise the tier; nobody may lower it."""
    why = team_policies.may_review(user, request.team)
    if why:
        return why
    if request.state not in (RequestState.OPEN, RequestState.APPROVED):
        return f"{request} is {request.get_state_display()}: its tier is settled."
    if api.rank(tier) <= api.rank(effective_tier(request)):
        return f"The tier is {effective_tier(request)} already; it may be raised, never lowered."
    return None


def may_withdraw(user: Any, request: ReviewRequest) -> str | None:
    """Whoever may run campaigns in the team may take a request back before it is verified."""
    why = team_policies.may_run_campaigns(user, request.team)
    if why:
        return why
    if request.state not in (RequestState.OPEN, RequestState.APPROVED):
        return f"{request} is {request.get_state_display()} and cannot be withdrawn."
    return None


def may_lift(user: Any, veto: Veto) -> str | None:
    """The author lifts a veto; a maintainer only once the author is no active reviewer of the team any more."""
    if not is_person(user):
        return team_policies.SERVICE
    if hasattr(veto, "lift"):
        return "This veto was lifted already."
    author_active = veto.by.is_active and "reviewer" in roles_of(veto.by, veto.team)
    if user == veto.by and author_active:
        return None
    if author_active:
        return f"{veto.by.name} set this veto and is an active reviewer; only {veto.by.name} may lift it."
    if "maintainer" in roles_of(user, veto.team):
        return None
    return f"{veto.by.name} is no active reviewer of {veto.team.name} any more; a maintainer may lift this veto."


def may_resolve(user: Any, opened_by: User, team: Team) -> str | None:
    """A thread is resolved by who opened it, or by a maintainer."""
    why = team_policies.may_comment(user, team)
    if why:
        return why
    if user == opened_by or "maintainer" in roles_of(user, team):
        return None
    return f"{opened_by.name} opened this thread; only {opened_by.name} or a maintainer resolves it."
