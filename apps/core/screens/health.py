"""Whether everything that should run runs, in sentences and in figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count

from apps.campaigns.choices import CampaignState, JobState
from apps.campaigns.jobs.selectors import workers
from apps.campaigns.models import Campaign, Job
from apps.reviews.choices import REQUEST_OPEN
from apps.reviews.models import ReviewRequest
from apps.reviews.selectors import promotions_blocked

CHILDREN = {"engine": "The engine", "evalworker": "The evaluation worker"}
MEANS = {
    "engine": "Campaigns stand still; nothing is lost.",
    "evalworker": "Candidates wait in the queue; nothing is lost and nothing is charged.",
}


@dataclass(frozen=True, slots=True)
class Banner:
    """A strip under the top bar."""

    tone: str
    icon: str
    label: str
    head: str
    text: str
    href: str
    link: str


def blocked_of(request: Any) -> list[str]:
    """``promotions_blocked``, asked once per request."""
    if not hasattr(request, "_promotions_blocked"):
        request._promotions_blocked = promotions_blocked()
    return request._promotions_blocked


def banners(blocked: list[str]) -> list[Banner]:
    """Dead children first, then what keeps promotions waiting."""
    found = []
    seen: dict[str, bool] = {}
    for status in workers():
        kind = status.worker.kind
        seen[kind] = seen.get(kind, False) or status.up
    for kind, name in CHILDREN.items():
        if seen.get(kind) is False:
            found.append(
                Banner(
                    "bad",
                    "server",
                    f"{name} is down",
                    f"{name} is down.",
                    MEANS[kind] + " The server starts it again by itself.",
                    "/system/",
                    "System",
                )
            )
    if blocked and not found:
        found.append(Banner("warn", "shield", "Promotions wait", "Promotions wait.", blocked[0], "/system/", "Why"))
    return found


def counts() -> dict[str, int]:
    """Figures for monitoring."""
    found = {f"campaigns_{state}": 0 for state in CampaignState.values}
    found |= {f"jobs_{state}": 0 for state in JobState.values}
    for row in Campaign.objects.order_by().values("state").annotate(n=Count("pk")):
        found[f"campaigns_{row['state']}"] = row["n"]
    for row in Job.objects.order_by().values("state").annotate(n=Count("pk")):
        found[f"jobs_{row['state']}"] = row["n"]
    found["reviews_open"] = ReviewRequest.objects.filter(state__in=REQUEST_OPEN).count()
    found["workers_up"] = sum(status.up for status in workers())
    found["promotions_blocked"] = int(bool(promotions_blocked()))
    return found
