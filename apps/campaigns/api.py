"""Campaigns for scripts: list, one with its log, and starting one with a scoped token."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, JsonResponse

from apps.campaigns import selectors, services
from apps.campaigns.models import Campaign
from apps.core.errors import Invalid, NotFound, Refused
from apps.stream.selectors import head
from apps.teams.selectors import token_maker
from apps.teams.tokens import Caller, api_view

BODY_LIMIT = 64 * 1024


def campaign_document(row: Campaign) -> dict[str, Any]:
    """The status of a campaign."""
    return {
        "id": row.pk, "name": row.name, "team": row.team.slug, "state": row.state, "cause": row.cause,
        "options": row.options, "grant": row.grant, "agent": row.agent_kind, "operator": row.slot.operator.name,
        "backend": row.slot.backend, "hardware": row.slot.hardware.name, "workload": row.slot.workload,
        "goal_digest": row.goal_digest, "incumbent": row.incumbent_id, "head": head(row.stream),
        "started_at": row.started_at.isoformat() if row.started_at else None,
        "ended_at": row.ended_at.isoformat() if row.ended_at else None,
    }


@api_view("GET", "POST")
def campaigns(request: HttpRequest, caller: Caller) -> JsonResponse:
    """``GET``: the newest 100 campaigns. ``POST {"team", "goal", "name"}``: create and start one; needs the scope."""
    if request.method == "POST":
        return _create(request, caller)
    rows = selectors.campaigns_for(caller.user).filter(team__in=caller.teams)[:100]
    return JsonResponse({"campaigns": [campaign_document(row) for row in rows]})


def _create(request: HttpRequest, caller: Caller) -> JsonResponse:
    if caller.token is not None and not caller.token.can_run_campaigns:
        raise Refused("This API token may only read. A maintainer can create one that may run campaigns.")
    if len(request.body) > BODY_LIMIT:
        raise Invalid(f"The body has {len(request.body)} bytes; at most {BODY_LIMIT} are read.")
    try:
        document = json.loads(request.body)
        slug, goal, name = document["team"], document["goal"], str(document.get("name", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Invalid('Expected {"team": "<slug>", "goal": {...}, "name": "..."}.') from error
    team = next((team for team in caller.teams if team.slug == slug), None)
    if team is None:
        raise NotFound("There is no such team for this caller.")
    scope = caller.token is not None
    row = services.campaign_create(team=team, person=caller.user, goal=goal, name=name[:120], token_scope=scope)
    maker = token_maker(caller.token) if caller.token is not None else None
    if maker is not None and maker != caller.user:  # who holds the secret may be who made it: both started it
        services.influence_add(campaign=row, user=maker, source="API token")
    services.campaign_start(campaign=row, person=caller.user, token_scope=scope)
    return JsonResponse(campaign_document(row), status=201)


@api_view("GET")
def campaign(request: HttpRequest, caller: Caller, pk: int) -> JsonResponse:
    """``GET /api/v1/campaigns/<id>``: status, goal and the experiment log."""
    row = selectors.campaign_for(caller.user, pk)
    if row.team not in caller.teams:
        raise NotFound("There is no such campaign for this token.")
    return JsonResponse({**campaign_document(row), "goal": row.goal, "log": selectors.log_of(row)})
