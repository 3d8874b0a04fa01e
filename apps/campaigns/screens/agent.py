"""The language model of a campaign on its page: what it answers now, how a person steers it, what was said so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.bridge import api
from apps.bridge.api.steering import direction_names
from apps.campaigns import model_choice
from apps.campaigns.choices import CAMPAIGN_ENDED, TurnState
from apps.campaigns.models import AgentTurn, Campaign, Hypothesis, Round
from apps.campaigns.turns.selectors import turns_of

READS_WORDS = ("openai", "mcp")
"""Agents that a person can steer by words; the others are programs."""
SHOWN = 8
STEERS = {
    "hint": ("bulb", "gave a hint"),
    "forbid": ("ban", "forbade"),
    "allow": ("check", "allowed again"),
    "restructure": ("branch", "asked for a restructuring"),
    "model": ("agent", "changed the model"),
}


@dataclass(frozen=True, slots=True)
class TurnLine:
    """One turn as a line: the tools it called, by name."""

    turn: AgentTurn
    tools: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """Where the round's page shows it."""
        return f"turn-{self.turn.attempt}.{self.turn.sample}.{self.turn.number}"

    @property
    def tokens(self) -> int:
        """In and out together."""
        return self.turn.tokens_in + self.turn.tokens_out


@dataclass(frozen=True, slots=True)
class SteerLine:
    """What a person asked of the agent."""

    icon: str
    did: str
    document: Mapping[str, Any]


def agent_context(campaign: Campaign, rounds: list[Round]) -> dict[str, Any]:
    """The region's share of the page. Empty for agents that are programs."""
    if campaign.agent_kind not in READS_WORDS:
        return {"reads_words": False}
    ended = campaign.state in CAMPAIGN_ENDED
    current = rounds[0] if rounds else None
    turns = turns_of(campaign, current.number) if current else AgentTurn.objects.none()
    count = turns.count()
    choice = campaign.agent or campaign.goal["agent"]
    here = model_choice.endpoints() if campaign.agent_kind == "openai" and not ended else None
    return {
        "reads_words": True,
        "agent_now": choice,
        "turn_lines": [TurnLine(row, tools_of(row)) for row in turns.reverse()[:SHOWN]],
        "turns_before": max(0, count - SHOWN),
        "asking": not ended and turns.filter(status=TurnState.OPEN).exists(),
        "current_round": current,
        "steerable": not ended and campaign.state != "draft",
        "steered": [steer_line(one) for one in reversed(campaign.steering or [])],
        "directions": directions_of(campaign, rounds),
        "models": model_options(here) if here else [],
        "outside": outside_asking(campaign) if campaign.agent_kind == "mcp" and not ended else None,
    }


def outside_asking(campaign: Campaign) -> Any:
    """What an agent outside of this server did in the present asking; ``None`` before its first call."""
    return campaign.outside_askings.last()  # type: ignore[attr-defined]


def tools_of(row: AgentTurn) -> tuple[str, ...]:
    """Names of the tools it called, as the model wrote them."""
    calls = (row.document.get("answer") or {}).get("calls") or ()
    return tuple(str(call.get("name", ""))[:60] for call in calls)[:6]


def steer_line(document: Mapping[str, Any]) -> SteerLine:
    """One entry of the history."""
    icon, did = STEERS.get(str(document.get("kind")), ("person", "steered"))
    return SteerLine(icon, did, document)


def directions_of(campaign: Campaign, rounds: list[Round]) -> list[str]:
    """Directions that may be forbidden: those of hypotheses and rounds with their kernel function, then all by name."""
    stated = Hypothesis.objects.filter(campaign=campaign).values_list("direction", "function")
    used = {f"{direction}:{function}" for direction, function in stated} | {one.direction for one in rounds}
    forbidden = {str(one.get("direction")) for one in campaign.forbidden or ()}
    return [*sorted(used - forbidden - {""}), *(name for name in direction_names() if name not in forbidden)]


def model_options(here: api.EndpointsHere) -> list[dict[str, Any]]:
    """What the model may be changed to: ``value`` is endpoint, model and effort apart by a tab."""
    found = []
    for endpoint in here.endpoints:
        for model in endpoint.models:
            if model.listed:
                continue
            price = model_choice.price_text(model)
            for effort in ("", *model.efforts):
                found.append({"value": "\t".join((endpoint.name, model.name, effort)), "endpoint": endpoint.name,
                              "model": model.name, "effort": effort, "price": price})
    return found
