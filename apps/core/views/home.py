"""What needs me now?"""

from __future__ import annotations

from django.http import HttpResponse
from django.utils import timezone

from apps.core.current_team import current_team
from apps.core.paging import SignedIn, page, show
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
