"""Events over plain HTTP: for pages whose socket does not open, for scripts, for exports."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_GET

from apps.campaigns.models import Campaign
from apps.core.errors import NotFound
from apps.stream.frames import PAGE, frames_after
from apps.stream.selectors import head
from apps.teams.models import ApiToken, Team
from apps.teams.policies import may_see
from apps.teams.selectors import token_owner

BEARER = "Bearer "


@require_GET
def campaign_events(request: HttpRequest, pk: int) -> JsonResponse:
    """``GET /api/v1/campaigns/<id>/events?after=``: at most 200 events in order, and the head."""
    campaign = Campaign.objects.select_related("team").filter(pk=pk).first()
    return _answer(request, campaign.stream if campaign else "", campaign.team if campaign else None)


@require_GET
def team_events(request: HttpRequest, slug: str) -> JsonResponse:
    """``GET /api/v1/teams/<slug>/events?after=``."""
    team = Team.objects.filter(slug=slug).first()
    return _answer(request, team.stream if team else "", team)


def _answer(request: HttpRequest, stream: str, team: Team | None) -> JsonResponse:
    token = _token(request)
    if token is None and not request.user.is_authenticated:
        return _problem(401, "signed_out", "Sign in, or send an API token as 'Authorization: Bearer ...'.")
    allowed = team is not None and _sees(token, request, team)
    if not allowed:
        return _problem(404, NotFound.code, "There is no such stream here, or it belongs to another team.")
    after = request.GET.get("after", "0")
    if not (after.isascii() and after.isdigit() and len(after) < 16):
        return _problem(422, "invalid", f"after={after!r} is not an event number. Use the last number you have, or 0.")
    answer = JsonResponse({"events": frames_after(stream, int(after), PAGE), "head": head(stream)})
    answer["Cache-Control"] = "no-store"
    return answer


def _sees(token: ApiToken | None, request: HttpRequest, team: Team) -> bool:
    """A token reads its own team, for as long as its account is in it."""
    if token is not None:
        return token.team_id == team.pk and may_see(token.user, team) is None
    return may_see(request.user, team) is None


def _token(request: HttpRequest) -> ApiToken | None:
    given = request.headers.get("Authorization", "")
    return token_owner(given.removeprefix(BEARER)) if given.startswith(BEARER) else None


def _problem(status: int, code: str, text: str) -> JsonResponse:
    return JsonResponse({"code": code, "text": text}, status=status)
