"""The append-only trail as a page."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpResponse

from apps.audit.selectors import entries_for
from apps.audit.subjects import subjects
from apps.core.current_team import current_team
from apps.core.paging import SignedIn, page, show

PER_PAGE = 50


@page
def trail(request: SignedIn) -> HttpResponse:
    """Entries of the current team (an admin with ``?all=1`` sees the installation), filtered by verb and object."""
    team = None if request.user.is_superuser and request.GET.get("all") else current_team(request)
    entries = entries_for(request.user, team)
    verb, subject = request.GET.get("verb", ""), request.GET.get("object", "")
    if verb:
        entries = entries.filter(verb__startswith=verb)
    if subject:
        entries = entries.filter(object_id=subject)
    shown = Paginator(entries, PER_PAGE).get_page(request.GET.get("page"))
    return show(
        request,
        "audit/trail.html",
        {"entries": shown, "rows": subjects(shown), "verb": verb, "object": subject, "team": team},
    )
