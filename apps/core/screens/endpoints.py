"""Endpoints of language models on the system page: what the settings name, whether a key is there, when each was last
seen to answer. The key itself is known to the engine alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from apps.bridge import api
from apps.campaigns.choices import TurnState
from apps.campaigns.model_choice import endpoints, price_text
from apps.campaigns.models import AgentTurn, Worker
from apps.teams.selectors import teams_of

EXAMPLE = '''[endpoint.local]
url = "http://127.0.0.1:8000/v1"
models = ["qwen3-coder"]

[endpoint.hosted]
url = "https://llm.example.org/v1"
key_variable = "HOSTED_KEY"
models = [{name = "large", context_tokens = 128000, efforts = ["low", "high"]}]

[endpoint.hosted.price.large]
input = 1.25
cached = 0.125
output = 10.0
currency = "USD"
date = "2026-11-01"'''
"""Shown where none is configured. Names and prices are made up."""


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """An endpoint with what was seen of it. ``key`` is ``none needed``, ``set``, ``not set`` or ``unknown``."""

    endpoint: api.EndpointOf
    models: tuple[tuple[api.ModelOf, str], ...]
    key: str
    answered: datetime | None
    failed: datetime | None
    error: str

    @property
    def state(self) -> str:
        """``answers``, ``fails`` or ``not asked``, by whichever came last."""
        if self.answered is None and self.failed is None:
            return "not asked"
        return "answers" if self.failed is None or (self.answered and self.answered >= self.failed) else "fails"


def endpoints_context(user: Any) -> dict[str, Any]:
    """The endpoints' share of the system page."""
    here = endpoints()
    return {
        "endpoints": here,
        "endpoint_rows": [row_of(one, user) for one in here.endpoints],
        "endpoints_example": EXAMPLE,
        "endpoints_path": settings.ENDPOINTS_PATH,
    }


def row_of(endpoint: api.EndpointOf, user: Any) -> EndpointRow:
    """One endpoint. What it said when it failed may quote a question, so only the teams that asked read it."""
    turns = AgentTurn.objects.filter(endpoint=endpoint.name).order_by("-at", "-id")
    answered = turns.filter(status=TurnState.COMPLETE).values_list("at", flat=True).first()
    failed = turns.filter(status=TurnState.FAILED, blame="provider").first()
    own = failed is not None and teams_of(user).filter(pk=failed.campaign.team_id).exists()
    return EndpointRow(
        endpoint, tuple((model, price_text(model)) for model in endpoint.models), key_of(endpoint), answered,
        failed.at if failed else None, failed.error if failed is not None and own else "",
    )


def key_of(endpoint: api.EndpointOf) -> str:
    """Whether the engine has the key's variable, as it last reported."""
    if not endpoint.key_variable:
        return "none needed"
    engine = Worker.objects.filter(kind="engine", lease_expires_at__isnull=False).order_by("-beat_at").first()
    known = (engine.environment or {}).get("keys") if engine else None
    if not isinstance(known, dict) or endpoint.name not in known:
        return "unknown"
    return "set" if known[endpoint.name] is True else "not set"
