"""What needs me now: the inbox, campaigns that run or ask, what changed, the system's state."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest
from django.utils import timezone

from apps.campaigns.choices import CAMPAIGN_ACTIVE, CampaignState, JobState
from apps.campaigns.jobs.selectors import selftests, workers
from apps.campaigns.models import Campaign, Job
from apps.campaigns.screens import listing
from apps.campaigns.screens.detail import plateau_options
from apps.core.screens.health import blocked_of
from apps.kernels.models import Promotion
from apps.reviews.screens.inbox import row_of
from apps.reviews.selectors import inbox_for, requests_for
from apps.stream.selectors import head
from apps.teams import policies
from apps.teams.models import Team
from apps.teams.selectors import grants_announced, teams_of

SHOWN = 8


def home_context(request: HttpRequest, team: Team | None) -> dict[str, Any]:
    """The whole page."""
    user: Any = request.user
    waiting = inbox_for(user)
    active = listing.light(user).filter(state__in=CAMPAIGN_ACTIVE)
    rows = listing.rows(active[:SHOWN], history=True)
    since = user.last_looked_at or timezone.now() - timedelta(days=7)
    week = timezone.now() - timedelta(days=7)
    promotions = Promotion.objects.filter(slot__team__in=teams_of(user))
    queue = Job.objects.filter(state__in=(JobState.QUEUED, JobState.LEASED))
    recent = promotions.select_related("slot__operator", "slot__hardware", "kernel", "by", "request", "verdict")
    return {
        "mine": [row_of(one, user) for one in waiting],
        "oldest": min((one.opened_at for one in waiting), default=None),
        "rows": rows,
        "total": active.count(),
        "with_history": True,
        "all_campaigns": listing.light(user).count(),
        "asking": [
            {"campaign": row, "options": plateau_options(row), "why_not": policies.may_run_campaigns(user, row.team)}
            for row in active.filter(state=CampaignState.PLATEAU)[:3]
        ],
        "plateaus": active.filter(state=CampaignState.PLATEAU).count(),
        "since": since,
        "changed": changed(user, since),
        "week": promotions.filter(at__gte=week).aggregate(
            all=Count("pk", filter=~Q(kind="rollback")),
            auto=Count("pk", filter=Q(kind="auto")),
            rollbacks=Count("pk", filter=Q(kind="rollback")),
        ),
        "queue": queue.filter(state=JobState.QUEUED).count(),
        "running_jobs": queue.filter(state=JobState.LEASED).count(),
        "promotions": [promotion_row(one) for one in recent.prefetch_related("request__decisions__user")[:6]],
        "selftest": next(iter(selftests()), None),
        "blocked": blocked_of(request),
        "workers": workers(),
        "team": team,
        "grants": list(grants_announced(user, week)[:5]),
        "why_not_run": policies.may_run_campaigns(user, team) if team else "You are in no team yet.",
        "stream": True if team else None,
        "stream_head": head(team.stream) if team else 0,
        "open_others": requests_for(user).filter(state__in=("open", "approved", "verifying")).count() - len(waiting),
    }


def changed(user: Any, since: Any) -> dict[str, int]:
    """What happened since the person last looked."""
    teams = teams_of(user)
    promotions = Promotion.objects.filter(slot__team__in=teams, at__gte=since)
    return {
        "promotions": promotions.exclude(kind="rollback").count(),
        "rollbacks": promotions.filter(kind="rollback").count(),
        "rounds": Campaign.objects.filter(team__in=teams, rounds__ended_at__gte=since).aggregate(n=Count("rounds"))[
            "n"
        ],
    }


def promotion_row(one: Promotion) -> dict[str, Any]:
    """A promotion with its approvers and the ratio of its verification."""
    overall = (one.verdict.document.get("timing") or {}).get("overall", {})
    ratio = overall.get("champion") or overall.get("baseline")
    approvers = [row.user.name for row in one.request.decisions.all() if row.kind == "approve"] if one.request else []
    return {"promotion": one, "ratio": ratio["ratio"] if ratio else None, "approvers": approvers}
