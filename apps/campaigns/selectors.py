"""Reading campaigns, rounds, hypotheses and the log. Other teams' campaigns are ``NotFound``."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from apps.bridge import api
from apps.campaigns.choices import CampaignState, JobState
from apps.campaigns.models import Campaign, Hypothesis, Job, Round
from apps.core.errors import NotFound
from apps.teams.selectors import teams_of


def campaigns_for(user: Any) -> QuerySet[Campaign]:
    """Campaigns of the user's teams, newest first, with how many rounds concluded (``rounds_concluded``)."""
    return Campaign.objects.filter(team__in=teams_of(user)).select_related(
        "team", "slot__operator", "slot__hardware", "started_by", "incumbent_verdict"
    ).annotate(rounds_concluded=Count("rounds", filter=Q(rounds__state="concluded", rounds__number__gt=0)))


def campaign_for(user: Any, pk: int) -> Campaign:
    """A campaign of the user's teams.

    Raises:
        NotFound: unknown or another team's.
    """
    row = Campaign.objects.filter(pk=pk, team__in=teams_of(user)).select_related(
        "team", "slot__operator", "slot__hardware", "slot__team", "started_by", "incumbent", "incumbent_verdict",
        "start_kernel", "fork_of",
    ).first()
    if row is None:
        raise NotFound("There is no such campaign in your teams.")
    return row


def at_work() -> QuerySet[Campaign]:
    """Running campaigns of which a job may come any moment: one that waits for an outside agent to call, which may be
    never, keeps neither the self-test nor another campaign from its turn."""
    jobs = Job.objects.filter(campaign=OuterRef("pk"), state__in=(JobState.QUEUED, JobState.LEASED))
    running = Campaign.objects.filter(state=CampaignState.RUNNING)
    return running.exclude(Q(agent_kind="mcp") & ~Exists(jobs))


def rounds_of(campaign: Campaign) -> QuerySet[Round]:
    """All rounds in order, with kernel and verdict."""
    return campaign.rounds.select_related("kernel", "verdict", "base").order_by("number")


def round_for(campaign: Campaign, number: int) -> Round:
    """One round.

    Raises:
        NotFound: the campaign has no such round.
    """
    row = rounds_of(campaign).filter(number=number).first()
    if row is None:
        raise NotFound(f"{campaign} has no round {number}.")
    return row


def hypotheses_of(campaign: Campaign) -> QuerySet[Hypothesis]:
    """Ideas by expected gain, struck ones included."""
    return campaign.hypotheses.select_related("round", "edited_by")


def log_of(campaign: Campaign) -> list[dict[str, Any]]:
    """The experiment log (R6): entries with the fixed schema, in order of rounds."""
    entries = campaign.rounds.exclude(entry=None).order_by("number").values_list("entry", flat=True)
    # PostgreSQL's jsonb keeps no order of keys; the log's columns have one.
    return [{column: entry[column] for column in api.log_columns()} for entry in entries if entry]


def seconds_running(campaign: Campaign) -> float:
    """Seconds that count against the budget, as the engine last said."""
    return campaign.active_seconds
