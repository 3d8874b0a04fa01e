"""Keeping turns: an open one before anything is sent, the same one again when it is over, with its event."""

from __future__ import annotations

import json
import math
from typing import Any

from django.utils import timezone

from apps.campaigns.choices import TurnState
from apps.campaigns.models import Campaign
from apps.campaigns.turns.models import AgentTurn
from apps.core.errors import LeaseLost
from apps.stream.services import Log, recording

TEXT_KEPT = 2000
MOST_TOKENS = 10 ** 12


def turn_keep(*, campaign: Campaign, fence: int, document: dict[str, Any]) -> AgentTurn:
    """Write or replace the turn that ``document`` names; told on the campaign's stream once it is over.

    ``document`` is free of keys by now. A complete turn is never made open again.

    Raises:
        LeaseLost: another engine took over the campaign; nothing was written.
    """
    with recording(campaign.stream) as log:
        if not Campaign.objects.filter(pk=campaign.pk, fence=fence).exists():
            raise LeaseLost(f"Another engine took over {campaign}; a turn of this one was not kept.")
        name = {"campaign": campaign, "round_number": document["round"], "attempt": document["attempt"],
                "sample": document["sample"], "number": document["number"],
                "request_digest": document["request_digest"][:71]}
        before = AgentTurn.objects.filter(**name).values_list("status", flat=True).first()
        if before == TurnState.COMPLETE and document["status"] == TurnState.OPEN:
            return AgentTurn.objects.get(**name)
        row, _ = AgentTurn.objects.update_or_create(
            **name, defaults=_columns(document) | {"text": json.dumps(document), "at": timezone.now()})
        if row.status != TurnState.OPEN and row.status != before:
            _tell(log, campaign, row)
            if row.currency and not campaign.currency:
                Campaign.objects.filter(pk=campaign.pk, currency="").update(currency=row.currency)
    return row


def turns_close(campaign: Campaign, log: Log, why: str) -> None:
    """Turns that are open when a campaign ends are over: whoever waits for one of them is told so. Within the
    transaction that ends it, which locked the campaign's stream."""
    for row in AgentTurn.objects.filter(campaign=campaign, status=TurnState.OPEN):
        document = row.document | {"status": TurnState.CANCELLED.value, "error": why}
        row.status, row.error, row.text = TurnState.CANCELLED, why, json.dumps(document)
        row.save(update_fields=["status", "error", "text"])
        _tell(log, campaign, row)


def _columns(document: dict[str, Any]) -> dict[str, Any]:
    answer = document.get("answer") or {}
    usage = answer.get("usage") or {}
    return {
        "status": document["status"], "endpoint": _short(document.get("endpoint"), 100),
        "model": _short(document.get("model"), 200), "tokens_in": _count(usage.get("input")),
        "tokens_out": _count(usage.get("output")), "cost": _cost(document.get("cost")),
        "currency": _short(document.get("currency"), 8), "latency_s": document.get("latency_s") or 0.0,
        "finish": _short(answer.get("finish"), 64), "blame": _short(document.get("blame"), 16),
        "error": _short(document.get("error"), TEXT_KEPT),
    }


def _count(tokens: Any) -> int:
    """What an endpoint counted, within what a column takes: it may say anything."""
    return min(max(0, int(tokens or 0)), MOST_TOKENS)


def _cost(cost: Any) -> float | None:
    return float(cost) if cost is not None and math.isfinite(cost) and cost >= 0 else None


def _short(text: Any, kept: int) -> str:
    """What a text column takes: no NUL, no lone surrogate, at most ``kept`` characters."""
    return str(text or "").replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")[:kept]


def _tell(log: Log, campaign: Campaign, row: AgentTurn) -> None:
    log.append(campaign.stream, "agent.turn", {
        "round": row.round_number, "attempt": row.attempt, "sample": row.sample, "number": row.number,
        "turn": row.pk, "status": row.status, "model": row.model, "endpoint": row.endpoint,
        "tokens": row.tokens_in + row.tokens_out, "cost": row.cost, "currency": row.currency,
        "latency_s": round(row.latency_s, 2), "blame": row.blame, "error": row.error[:300],
    })
