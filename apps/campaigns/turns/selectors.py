"""Reading turns: those of a round, and what a campaign paid."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet, Sum

from apps.campaigns.choices import TurnState
from apps.campaigns.models import Campaign
from apps.campaigns.turns.models import AgentTurn


@dataclass(frozen=True, slots=True)
class Paid:
    """What the stored turns of a campaign cost. ``money`` is in the campaign's currency."""

    tokens: int = 0
    money: float = 0.0
    turns: int = 0


def turns_of(campaign: Campaign, round_number: int | None = None) -> QuerySet[AgentTurn]:
    """Turns of one round, or of all, in the order of (round, attempt, sample, number)."""
    rows = AgentTurn.objects.filter(campaign=campaign)
    return rows if round_number is None else rows.filter(round_number=round_number)


def turn_for(campaign: Campaign, pk: int) -> AgentTurn | None:
    """One turn of the campaign."""
    return AgentTurn.objects.filter(campaign=campaign, pk=pk).first()


def paid(campaign: Campaign, *, before_round: int | None = None) -> Paid:
    """Sums over everything that was sent and is over, or over the rounds before one. A turn counts as one when the
    model answered, well or badly; tokens and money count whoever is to blame, as far as the endpoint named them."""
    answered = Q(status=TurnState.COMPLETE) | Q(status=TurnState.FAILED, blame="model")
    rows = turns_of(campaign)
    if before_round is not None:
        rows = rows.filter(round_number__lt=before_round)
    found = rows.exclude(status=TurnState.OPEN).order_by().aggregate(
        tokens_in=Sum("tokens_in"), tokens_out=Sum("tokens_out"), money=Sum("cost"), turns=Count("pk", filter=answered))
    return Paid((found["tokens_in"] or 0) + (found["tokens_out"] or 0), found["money"] or 0.0, found["turns"] or 0)
