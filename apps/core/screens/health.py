"""Whether everything that should run runs, in sentences and in figures."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count

from apps.campaigns.choices import CampaignState, JobState
from apps.campaigns.jobs.selectors import workers
from apps.campaigns.jobs.workers import selftest_gap
from apps.campaigns.models import Campaign, Job
from apps.reviews import triggers
from apps.reviews.choices import REQUEST_OPEN
from apps.reviews.models import ReviewRequest

CHILDREN = {"engine": "The engine", "evalworker": "The evaluation worker"}
MEANS = {
    "engine": "Campaigns stand still; nothing is lost.",
    "evalworker": "Candidates wait in the queue; nothing is lost and nothing is charged.",
}


def promotions_blocked() -> list[str]:
    """Sentences that say what keeps promotions waiting on the devices that are up; empty when they may happen now."""
    found = []
    gone = triggers.missing()
    if gone:
        found.append(
            f"{len(gone)} of the database's own guards are missing or altered. Run `python manage.py migrate`."
        )
    evaluators = [status.worker for status in workers() if status.up and status.worker.kind == "evalworker"]
    if not evaluators:
        return [*found, "No evaluation worker is up, so nothing can be verified before a promotion."]
    for worker in evaluators:
        if worker.isolation is None:
            found.append(f"On {worker.hardware} no isolation level was proved yet; the first evaluation proves it.")
            continue
        if worker.isolation < settings.REQUIRED_ISOLATION:
            found.append(
                f"On {worker.hardware} isolation level {worker.isolation} was proved; "
                f"{settings.REQUIRED_ISOLATION} is needed."
            )
        gap = selftest_gap(worker.environment.get("class", ""), worker.isolation, "numba")
        if gap:
            found.append(f"{worker.hardware}: {gap}")
    return found


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


def banners() -> list[Banner]:
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
    blocked = promotions_blocked()
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
