"""What needs me now?"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.core.current_team import current_team
from apps.core.paging import SignedIn, page, show
from apps.core.screens.health import banners, blocked_of
from apps.core.screens.home import home_context
from apps.teams.models import User


@page
def home(request: SignedIn) -> HttpResponse:
    """The inbox, campaigns that run or ask, recent promotions, the system's state."""
    team = current_team(request)
    answer = show(request, "core/home.html", home_context(request, team), {"now": "core/parts/now.html"})
    if "part" not in request.GET:
        User.objects.filter(pk=request.user.pk).update(last_looked_at=timezone.now())
    return answer


@never_cache
@require_safe
def banner_strip(request: HttpRequest) -> HttpResponse:
    """The strip under the top bar, which open pages ask for again; nothing (204) for somebody signed out."""
    if not request.user.is_authenticated:
        return HttpResponse(status=204)
    return render(request, "core/partials/banners.html", {"banners": banners(blocked_of(request))})
