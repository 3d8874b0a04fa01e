"""What a campaign may spend and has spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.campaigns.models import Campaign, Round
from apps.campaigns.selectors import seconds_running


@dataclass(frozen=True, slots=True)
class Meter:
    """One kind of budget: used and allowed in ``unit``; ``share`` from 0 to 1."""

    name: str
    used: float
    allowed: float
    unit: str

    @property
    def share(self) -> float:
        """How much is used up."""
        return min(1.0, self.used / self.allowed) if self.allowed else 1.0


def meters(campaign: Campaign, rounds: Sequence[Round]) -> list[Meter]:
    """The budget's halves that are limited. Round 0 costs no round; infrastructure faults cost nothing."""
    budget = campaign.goal.get("budget", {})
    charged = [one for one in rounds if one.number > 0]
    found = []
    if budget.get("rounds"):
        found.append(Meter("Rounds", len(charged), budget["rounds"], ""))
    if budget.get("evaluations"):
        found.append(
            Meter("Evaluations", sum(one.verdict_id is not None for one in charged), budget["evaluations"], "")
        )
    if budget.get("seconds"):
        found.append(Meter("Time running", seconds_running(campaign), budget["seconds"], "s"))
    if budget.get("tokens"):
        found.append(Meter("Tokens", campaign.tokens_used, budget["tokens"], ""))
    return found


def largest_share(campaign: Campaign, rounds_started: int) -> float | None:
    """The most used-up half of the budget, for lists that do not read the rounds."""
    budget = campaign.goal.get("budget", {})
    shares = [rounds_started / budget["rounds"]] if budget.get("rounds") else []
    if budget.get("seconds"):
        shares.append(seconds_running(campaign) / budget["seconds"])
    return min(1.0, max(shares)) if shares else None
