"""The system page: may promotions happen now, and if not, why."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Count
from django.http import HttpRequest

from apps.bridge import api
from apps.campaigns.choices import JobState
from apps.campaigns.jobs.selectors import queue, selftests, workers
from apps.campaigns.models import Job, SelfTestOrder
from apps.core.screens.canary import canary_rows
from apps.core.screens.doctor import doctor_rows
from apps.core.screens.endpoints import endpoints_context
from apps.core.screens.health import blocked_of
from apps.core.screens.isolation import mode_rows
from apps.kernels.models import Slot
from apps.kernels.screens.verdict.steadiness import telemetry
from apps.reviews.models import Verification
from apps.stream.selectors import head
from apps.teams import policies
from apps.teams.models import Team
from apps.teams.selectors import teams_of


def system_context(request: HttpRequest, team: Team | None) -> dict[str, Any]:
    """The whole page."""
    user: Any = request.user
    own = {job.owner_pid: job for job in Job.objects.filter(state=JobState.LEASED).select_related("campaign", "round")}
    tests = selftests()
    visible = set(teams_of(user).values_list("pk", flat=True))
    checks = doctor_rows()
    orders: dict[str, list[SelfTestOrder]] = {}
    for order in SelfTestOrder.objects.filter(test__isnull=True).select_related("by"):
        orders.setdefault(order.hardware, []).append(order)
    return {
        "blocked": blocked_of(request),
        "selftests": [selftest_row(row) for row in tests],
        "team": team,
        "workers": [
            {
                "status": status,
                "job": shown(own.get(status.worker.owner_pid), visible),
                "orders": orders.get(status.worker.hardware, []) if status.worker.kind == "evalworker" else [],
                "telemetry": telemetry(status.worker.environment.get("clocks") or {}),
            }
            for status in workers()
        ],
        **endpoints_context(user),
        "modes": mode_rows(),
        "canaries": canary_rows(),
        "canary_every": settings.CANARY_EVERY,
        "rechecks": rechecks(user),
        "queue": [shown(job, visible) for job in queue().filter(state=JobState.QUEUED)[:20]],
        "queued": Job.objects.filter(state=JobState.QUEUED).count(),
        "errored": Job.objects.filter(state=JobState.ERRORED, team__in=teams_of(user)).select_related("campaign")[:10],
        "by_state": dict(Job.objects.order_by().values_list("state").annotate(n=Count("pk"))),
        "quarantined": Slot.objects.filter(state="quarantined", team__in=teams_of(user)).select_related(
            "operator", "hardware"
        ),
        "evaluator": api.evaluator_version(),
        "why_not": policies.may_operate(user, team),
        "checks": checks,
        "warnings": sum(row["state"] in ("warning", "error") for row in checks),
        "stream": True if team else None,
        "stream_head": head(team.stream) if team else 0,
    }


def rechecks(user: Any) -> list[Verification]:
    """Champions of the user's teams that are verified again now, with how far that is."""
    rows = Verification.objects.filter(kind="recheck", state="running", slot__team__in=teams_of(user))
    return list(rows.select_related("slot__operator", "slot__hardware", "job"))


def shown(job: Job | None, visible: set[int]) -> dict[str, Any] | None:
    """A job; of other teams only that it is there."""
    if job is None:
        return None
    return {"job": job, "own": job.team_id is None or job.team_id in visible}


KINDS = {"cheat": "Known cheats refused", "wrong": "Wrong kernels refused", "honest": "Honest look-alikes accepted"}


def selftest_row(row: Any) -> dict[str, Any]:
    """A self-test pass with its counts by kind of kernel, and the kernels that went wrong."""
    kernels = (row.report or {}).get("kernels") or []
    counts = []
    for kind, words in KINDS.items():
        judged = [one for one in kernels if one.get("kind") == kind]
        if judged:
            right = sum(one.get("right") is True for one in judged)
            counts.append({"words": words, "right": right, "all": len(judged)})
    return {
        "test": row,
        "counts": counts,
        "total": len(kernels),
        "wrong": [one for one in kernels if one.get("right") is False],
        "seconds": (row.report or {}).get("seconds"),
    }
