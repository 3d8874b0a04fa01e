"""Steering a language model in the middle of a campaign: hints, forbidden directions, restructuring, another model."""

from __future__ import annotations

import re
from typing import Any

from apps.bridge import api
from apps.campaigns.choices import RoundState, SteerKind
from apps.campaigns.models import Campaign, Hypothesis, Round
from apps.campaigns.services.acting import act, check_allowed, influence_add
from apps.campaigns.services.endpoints import check_choice
from apps.campaigns.services.projection import report
from apps.core.errors import Invalid
from apps.stream.services import Log
from apps.teams.models import User

TEXT_KEPT = 2000
MOST_STEERS = 200
"""Times that a campaign is steered: every word stands in its state, which is rebuilt at every look at it."""


def campaign_steer(
    *, campaign: Campaign, person: User, kind: str, text: str = "", direction: str = "", endpoint: str = "",
    model: str = "", effort: str = "", token_scope: bool = False,
) -> Campaign:
    """Steer the agent; it applies from the next question to the model on, and cannot be taken back but by another.

    ``kind``: ``hint`` (``text``), ``forbid`` or ``allow`` (``direction``: ``tiling`` or ``tiling:_kernel``),
    ``restructure``, ``model`` (any of ``endpoint``, ``model``, ``effort``). Whoever's words reach the agent had a hand
    in what it proposes afterwards.

    Raises:
        Refused: the person may not run campaigns in the team.
        Invalid: an unknown kind, endpoint, model or effort; ``key`` names the value.
        ImpossibleTransition: the campaign is over, its agent reads no words, or there is nothing to do.
    """
    check_allowed(person, campaign.team, token_scope)
    if kind not in SteerKind.values:
        raise Invalid(f"'{kind}' is no way to steer. Ways: {', '.join(SteerKind.values)}.", key="kind")
    if len(text) > TEXT_KEPT:
        raise Invalid(f"The text has {len(text)} characters; at most {TEXT_KEPT} reach the agent. Shorten it.",
                      key="text")
    if kind != SteerKind.ALLOW and len(campaign.steering) >= MOST_STEERS:
        raise Invalid(f"This campaign was steered {len(campaign.steering)} times, the most there is; the agent reads "
                      "the newest words only. Stop it, and fork it with a better goal.", key="kind")
    words = api.plain_text(text, TEXT_KEPT)
    directs, changes = kind in (SteerKind.FORBID, SteerKind.ALLOW), kind == SteerKind.MODEL
    # What a way to steer has no use for is no second place for words.
    data: dict[str, Any] = {"kind": kind, "text": words, "direction": direction.strip() if directs else "",
                            "endpoint": endpoint.strip() if changes else "", "model": model.strip() if changes else "",
                            "effort": effort.strip() if changes else ""}
    if kind == SteerKind.FORBID:
        _check_function(campaign, data["direction"])
    if changes:
        check_choice(_changed(campaign, data), budget=campaign.budget or campaign.goal["budget"],
                     currency=campaign.currency)

    def also(row: Campaign, log: Log) -> None:
        if words:
            influence_add(campaign=row, user=person, source="hint")
        report(row, log, "campaign.steered", {"by": person.name, **{key: said for key, said in data.items() if said}})

    return act(campaign, person, "Steered", token_scope, also, person=person.name, **data)


def _check_function(campaign: Campaign, direction: str) -> None:
    """A direction names a function that the campaign knows. Any other name could be a sentence, and its author's words
    would reach the agent without anybody knowing whose kernel it is."""
    _, colon, function = direction.partition(":")
    if not colon or not function.isidentifier() or Hypothesis.objects.filter(campaign=campaign,
                                                                            function=function).exists():
        return  # what is no name at all the engine refuses
    sources = [row.text for row in (campaign.start_kernel, campaign.incumbent) if row is not None]
    if not any(re.search(rf"\bdef {re.escape(function)}\(", source) for source in sources):
        raise Invalid(f"No kernel of this campaign has a function '{function[:80]}'. Name one that it has, or the "
                      "direction alone for all of them.", key="direction")


def _changed(campaign: Campaign, data: dict[str, Any]) -> dict[str, Any]:
    """The choice of agent as it would be afterwards."""
    now = campaign.agent or campaign.goal["agent"]
    return now | {name: data[name] for name in ("endpoint", "model", "effort") if data[name]}


def answer_stop(*, campaign: Campaign, person: User, token_scope: bool = False) -> Campaign:
    """Stop the answer that is coming in and pause: the turn is cancelled, no round and no bounce is counted. Resuming
    asks again.

    Raises:
        Refused, ImpossibleTransition: see the sentence.
        Invalid: no answer is coming in.
    """
    check_allowed(person, campaign.team, token_scope)
    thinking = Round.objects.filter(campaign=campaign, number__gt=0, state=RoundState.THINKING).exists()
    if campaign.agent_kind != "openai" or not thinking:
        raise Invalid("No answer of a model is coming in now.")
    return act(campaign, person, "Paused", token_scope, reason=f"{person.name} stopped the model's answer.",
               code="answer_stopped", person=person.name)
