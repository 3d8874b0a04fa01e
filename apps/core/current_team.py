"""Which of a person's teams the pages speak of: asked for in the address, kept in the session, else the first."""

from __future__ import annotations

from django.http import HttpRequest

from apps.teams import selectors
from apps.teams.models import Team

KEY = "team"


def current_team(request: HttpRequest) -> Team | None:
    """The team chosen, ``None`` for somebody in no team. Asked once per request."""
    if not hasattr(request, "_current_team"):
        request._current_team = choose(request)  # type: ignore[attr-defined]
    return request._current_team  # type: ignore[attr-defined]


def choose(request: HttpRequest) -> Team | None:
    """Read the choice; a slug of somebody else's team is ignored."""
    teams = {team.slug: team for team in selectors.teams_of(request.user)}
    asked = request.GET.get(KEY)
    if asked in teams and asked != request.session.get(KEY):
        request.session[KEY] = asked
    chosen = asked if asked in teams else request.session.get(KEY)
    return teams.get(chosen or "") or next(iter(teams.values()), None)
