"""Rows of campaign lists. Verdict documents stay in the database: only the figures shown are extracted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Max, QuerySet

from apps.campaigns.choices import JobState
from apps.campaigns.models import Campaign, Job, Round
from apps.campaigns.screens.budget import largest_share
from apps.core import figures
from apps.kernels.screens.verdicts import over_start

TIMING = "incumbent_verdict__document__timing"


@dataclass(frozen=True, slots=True)
class CampaignRow:
    """One campaign in a list."""

    campaign: Campaign
    round: int | None
    over_baseline: float | None
    roof: float | None
    stop_roof: float
    budget: float | None
    job: Job | None
    history: list[float]
    low: float | None
    high: float | None

    @property
    def history_text(self) -> str:
        """The sparkline in words."""
        return f"incumbent over round 0, now {figures.ratio(self.history[-1])}" if self.history else ""

    @property
    def now(self) -> str:
        """What happens now, in a word: the stage, or that the agent thinks."""
        if self.job is None:
            return "agent thinks" if self.campaign.state == "running" else ""
        if self.job.state == JobState.QUEUED:
            return "queued"
        return (self.job.progress or {}).get("stage") or "evaluating"

    @property
    def now_detail(self) -> str:
        """The progress in numbers."""
        progress = (self.job.progress if self.job else None) or {}
        return f"{progress['done']} of {progress['total']}" if progress.get("total") else ""


def light(campaigns: QuerySet[Campaign]) -> QuerySet[Campaign]:
    """The campaigns with the figures of lists, their documents left in the database."""
    return campaigns.defer("incumbent_verdict__document").annotate(
        last_round=Max("rounds__number"), overall=F(f"{TIMING}__overall"), shapes=F(f"{TIMING}__shapes"))


def rows(campaigns: Iterable[Campaign], *, history: bool = False) -> list[CampaignRow]:
    """Rows of campaigns from ``light``; ``history`` adds the sparklines (one query over their rounds)."""
    listed = list(campaigns)
    jobs = {job.campaign_id: job for job in Job.objects.filter(
        campaign__in=listed, state__in=(JobState.QUEUED, JobState.LEASED)).defer("request")}
    lines = histories(listed) if history else {}
    found = []
    for campaign in listed:
        extra: Any = campaign
        verdict = campaign.incumbent_verdict
        ratio = over_start(extra.overall, verdict.against if verdict else {}, campaign.start_kernel_id) or {}
        found.append(CampaignRow(
            campaign, extra.last_round, ratio.get("ratio"), roof_of(extra.shapes), campaign.goal["stop"]["roof_share"],
            largest_share(campaign, extra.last_round or 0), jobs.get(campaign.pk), lines.get(campaign.pk, []),
            ratio.get("low"), ratio.get("high")))
    return found


def roof_of(shapes: list[dict[str, Any]] | None) -> float | None:
    """Weighted share of the measured roof."""
    known = [(shape["weight"], shape["roof_share"]) for shape in shapes or () if shape.get("roof_share") is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * share for weight, share in known) / total if total else None


def histories(campaigns: list[Campaign]) -> dict[int, list[float]]:
    """The incumbent's speed-up over round 0 by round, from the sessions that measured it."""
    found: dict[int, list[float]] = {}
    starts = {campaign.pk: campaign.start_kernel_id for campaign in campaigns}
    values = Round.objects.filter(campaign__in=campaigns, state="concluded").order_by("campaign_id", "number").values_list(
        "campaign_id", "number", "comparison", "verdict__document__timing__overall", "verdict__against")
    for campaign, number, comparison, overall, against in values:
        line = found.setdefault(campaign, [])
        if number == 0:
            line.append(1.0)
        elif line:
            ratio = over_start(overall, against, starts[campaign]) if comparison == "faster" else None
            line.append(ratio["ratio"] if ratio else line[-1])
    return found
