"""What a campaign may spend and has spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apps.campaigns.goal_form import plain
from apps.campaigns.model_choice import endpoints
from apps.campaigns.models import Campaign, Round
from apps.campaigns.selectors import seconds_running
from apps.campaigns.turns.selectors import paid
from apps.core import figures

UNITS = {"rounds": "rounds", "evaluations": "runs", "seconds": "s", "tokens": "tokens", "turns": "turns"}
NAMES = {"rounds": "Rounds", "evaluations": "Evaluations", "seconds": "Time running", "tokens": "Tokens",
         "turns": "Turns", "money": "Money"}


@dataclass(frozen=True, slots=True)
class Meter:
    """One kind of budget: used and allowed (``None``: no limit) in ``unit``; ``share`` from 0 to 1."""

    name: str
    used: float
    allowed: float | None
    unit: str

    @property
    def share(self) -> float | None:
        """How much is used up; ``None`` without a limit."""
        if self.allowed is None:
            return None
        return min(1.0, self.used / self.allowed) if self.allowed else 1.0

    @property
    def full(self) -> bool:
        """Whether it is at its limit."""
        return self.share is not None and self.share >= 1.0

    @property
    def used_text(self) -> str:
        """What is used; money carries its currency where no limit does."""
        return amount(self.used, self.unit, bare=self.allowed is not None)

    @property
    def allowed_text(self) -> str:
        """The limit."""
        return amount(self.allowed, self.unit) if self.allowed is not None else ""


def amount(value: float, unit: str, bare: bool = False) -> str:
    """A count of what the meter is named after, a duration, or money (any other unit is its currency)."""
    if unit == "s":
        return figures.duration(value)
    if unit in UNITS.values():
        return figures.count(value)
    return figures.money(value, "" if bare else unit)


def budget_of(campaign: Campaign) -> dict[str, Any]:
    """What may be spent: as a person raised it, or as the goal says."""
    return campaign.budget or campaign.goal.get("budget", {})


def meters(campaign: Campaign, rounds: Sequence[Round]) -> list[Meter]:
    """Kinds of budget that are limited, and what a language model spends without a limit. Round 0 costs no round;
    infrastructure faults cost nothing; turns, tokens and money count as soon as a turn is over."""
    budget = budget_of(campaign)
    charged = [one for one in rounds if one.number > 0]
    spent = paid(campaign)
    used = {
        "rounds": float(len(charged)), "evaluations": float(sum(one.verdict_id is not None for one in charged)),
        "seconds": seconds_running(campaign), "turns": max(spent.turns, campaign.turns_used),
        "tokens": max(spent.tokens, campaign.tokens_used), "money": max(spent.money, campaign.money_used),
    }
    units = {**UNITS, "money": campaign.currency or currency_of(campaign)}
    return [Meter(NAMES[name], used[name], budget.get(name), units[name]) for name in NAMES
            if budget.get(name) is not None or (used[name] and name in ("turns", "tokens", "money"))]


def currency_of(campaign: Campaign) -> str:
    """The currency of the price that the server knows for the campaign's model; empty without one."""
    agent = campaign.agent or campaign.goal.get("agent", {})
    if agent.get("kind") != "openai":
        return ""
    endpoint = endpoints().named(str(agent.get("endpoint") or ""))
    model = endpoint.model(str(agent.get("model") or "")) if endpoint else None
    return model.price.currency if model and model.price else ""


def raisable(campaign: Campaign) -> list[dict[str, Any]]:
    """The limits of the budget with their names, units and present values, for the form that raises them."""
    budget = budget_of(campaign)
    units = {**UNITS, "money": campaign.currency or currency_of(campaign)}
    return [{"key": name, "name": NAMES[name], "unit": units[name], "value": plain(budget[name])}
            for name in NAMES if budget.get(name) is not None]


def largest_share(campaign: Campaign, rounds_started: int) -> float | None:
    """The most used-up half of the budget, for lists that do not read the rounds."""
    budget = budget_of(campaign)
    shares = [rounds_started / budget["rounds"]] if budget.get("rounds") else []
    if budget.get("seconds"):
        shares.append(seconds_running(campaign) / budget["seconds"])
    for name, used in (("tokens", campaign.tokens_used), ("turns", campaign.turns_used),
                       ("money", campaign.money_used)):
        if budget.get(name):
            shares.append(used / budget[name])
    return min(1.0, max(shares)) if shares else None
