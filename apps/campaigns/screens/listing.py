"""Rows of campaign lists. Verdict documents stay in the database: only the figures shown are extracted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Max, QuerySet

from apps.campaigns.choices import JobState
from apps.campaigns.models import Campaign, Job, Round
from apps.campaigns.screens.budget import largest_share
from apps.campaigns.services.lifecycle import default_name
from apps.core import figures
from apps.kernels.models import Verdict
from apps.kernels.screens.verdicts import over_start
from apps.teams.selectors import teams_of


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
    environment_class: str

    @property
    def named(self) -> bool:
        """Whether a person gave it a name that says more than what the row shows anyway."""
        slot = self.campaign.slot
        return self.campaign.name != default_name(str(slot.operator), str(slot.hardware), self.campaign.agent_kind)

    @property
    def history_text(self) -> str:
        """The sparkline in words."""
        return f"incumbent over round 0, now {figures.ratio(self.history[-1])}" if self.history else ""

    @property
    def now(self) -> str:
        """What happens now, in a word: the stage, or that the agent thinks."""
        if self.job is None:
            thinks = "outside agent awaited" if self.campaign.agent_kind == "mcp" else "agent thinks"
            return thinks if self.campaign.state == "running" else ""
        if self.job.state == JobState.QUEUED:
            return "queued"
        return (self.job.progress or {}).get("stage") or "evaluating"

    @property
    def now_detail(self) -> str:
        """The progress in numbers."""
        progress = (self.job.progress if self.job else None) or {}
        return f"{progress['done']} of {progress['total']}" if progress.get("total") else ""


def light(user: Any) -> QuerySet[Campaign]:
    """Campaigns of the user's teams for lists, newest first; verdict documents stay in the database."""
    return (
        Campaign.objects.filter(team__in=teams_of(user))
        .select_related("team", "slot__operator", "slot__hardware", "started_by")
        .order_by("-id")
    )


def rows(campaigns: Iterable[Campaign], *, history: bool = False) -> list[CampaignRow]:
    """Rows of campaigns in the given order, by a fixed number of queries; ``history`` adds the sparklines."""
    listed = list(campaigns)
    open_jobs = Job.objects.filter(campaign__in=listed, state__in=(JobState.QUEUED, JobState.LEASED)).defer("request")
    jobs = {job.campaign_id: job for job in open_jobs}
    last = dict(Round.objects.filter(campaign__in=listed).order_by().values_list("campaign").annotate(Max("number")))
    timings = timings_of(listed)
    lines = histories(listed) if history else {}
    found = []
    for campaign in listed:
        overall, shapes, against, klass = timings.get(campaign.incumbent_verdict_id or 0, ({}, [], {}, ""))
        ratio = over_start(overall, against, campaign.start_kernel_id) or {}
        number = last.get(campaign.pk)
        found.append(
            CampaignRow(
                campaign=campaign,
                round=number,
                over_baseline=ratio.get("ratio"),
                roof=roof_of(shapes),
                stop_roof=campaign.goal["stop"]["roof_share"],
                budget=largest_share(campaign, number or 0),
                job=jobs.get(campaign.pk),
                history=lines.get(campaign.pk, []),
                low=ratio.get("low"),
                high=ratio.get("high"),
                environment_class=klass,
            )
        )
    return found


def timings_of(campaigns: Iterable[Campaign]) -> dict[int, tuple[Any, Any, Any, str]]:
    """(overall ratios, shapes, digests of the opponents, environment class) of the incumbents' verdicts."""
    values = Verdict.objects.filter(pk__in=[row.incumbent_verdict_id for row in campaigns]).values_list(
        "pk", "document__timing__overall", "document__timing__shapes", "against", "environment_class"
    )
    return {pk: (overall, shapes, against, klass) for pk, overall, shapes, against, klass in values}


def roof_of(shapes: list[dict[str, Any]] | None) -> float | None:
    """Weighted share of the measured roof."""
    known = [(shape["weight"], shape["roof_share"]) for shape in shapes or () if shape.get("roof_share") is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * share for weight, share in known) / total if total else None


def histories(campaigns: list[Campaign]) -> dict[int, list[float]]:
    """The incumbent's speed-up over round 0 by round, from the sessions that measured it."""
    found: dict[int, list[float]] = {}
    starts = {campaign.pk: campaign.start_kernel_id for campaign in campaigns}
    values = (
        Round.objects.filter(campaign__in=campaigns, state="concluded")
        .order_by("campaign_id", "number")
        .values_list("campaign_id", "number", "comparison", "verdict__document__timing__overall", "verdict__against")
    )
    for campaign, number, comparison, overall, against in values:
        line = found.setdefault(campaign, [])
        if number == 0:
            line.append(1.0)
        elif line:
            ratio = over_start(overall, against, starts[campaign]) if comparison == "faster" else None
            line.append(ratio["ratio"] if ratio else line[-1])
    return found
