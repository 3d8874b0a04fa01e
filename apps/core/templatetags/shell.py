"""The frame of every page: the top bar and the strips under it."""

from __future__ import annotations

from typing import Any

from django import template
from django.conf import settings
from django.template.context import RequestContext

from apps.core.current_team import current_team
from apps.core.screens.health import banners, blocked_of
from apps.reviews.selectors import waiting_count
from apps.teams import policies, selectors

register = template.Library()

NAV = (
    ("campaigns", "/campaigns/", "Campaigns"),
    ("reviews", "/reviews/", "Reviews"),
    ("operators", "/operators/", "Operators"),
    ("leaderboards", "/leaderboards/", "Leaderboards"),
    ("system", "/system/", "System"),
)
SECTIONS = {"kernels": "operators", "verdicts": "operators", "hardware": "system"}


def signed_in(context: RequestContext) -> Any:
    """The request of a signed-in person, or ``None`` (error pages may lack even the request)."""
    request = context.get("request")
    user = getattr(request, "user", None)
    return request if user is not None and user.is_authenticated else None


@register.inclusion_tag("core/partials/topbar.html", takes_context=True)
def topbar(context: RequestContext) -> dict[str, Any]:
    """Brand, team, navigation with counts, connection, theme and the person's menu."""
    request = signed_in(context)
    if request is None:
        return {"person": None}
    team = current_team(request)
    section = request.path.split("/")[1]
    section = SECTIONS.get(section, section)
    waiting = waiting_count(request.user)
    warning = "; ".join(blocked_of(request))
    nav = [
        {
            "href": href,
            "word": word,
            "current": key == section,
            "go": "reviews" if key == "reviews" else "",
            "count": waiting if key == "reviews" else 0,
            "warning": warning if key == "system" else "",
        }
        for key, href, word in NAV
    ]
    own = [
        {"team": one, "roles": sorted(selectors.roles_of(request.user, one))}
        for one in selectors.teams_of(request.user)
    ]
    roles = next((entry["roles"] for entry in own if entry["team"] == team), [])
    return {
        "person": request.user,
        "team": team,
        "teams": own,
        "roles": roles,
        "nav": nav,
        "live": context.get("stream"),
        "may_audit": policies.may_see_audit(request.user, team) is None,
        "csrf_token": context.get("csrf_token"),
    }


@register.inclusion_tag("core/partials/strips.html", takes_context=True)
def strips(context: RequestContext) -> dict[str, Any]:
    """The demo strip, dead children of the server, and whether promotions wait: every page says so."""
    request = signed_in(context)
    if request is None:
        return {"demo": settings.DEMO, "person": None}
    return {"demo": settings.DEMO, "person": request.user, "banners": banners(blocked_of(request))}
