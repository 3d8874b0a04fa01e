"""One kernel."""

from __future__ import annotations

from django.db.models import F
from django.http import HttpResponse

from apps.campaigns.models import Round
from apps.campaigns.screens.round import text_of
from apps.core.paging import SignedIn, page, show
from apps.kernels import selectors
from apps.reviews.models import ReviewRequest
from apps.teams.selectors import teams_of

SHOWN = 50


@page
def kernel_page(request: SignedIn, digest: str) -> HttpResponse:
    """Source, lineage, verdicts, rounds and reviews of one kernel."""
    kernel = selectors.kernel_for(request.user, digest)
    origins = list(selectors.origins_of(request.user, kernel))
    teams = teams_of(request.user)
    verdicts = (
        selectors.verdicts_of(request.user, kernel).defer("document").annotate(overall=F("document__timing__overall"))
    )
    rounds = Round.objects.filter(kernel=kernel, campaign__team__in=teams).select_related("campaign").order_by("-id")
    return show(
        request,
        "kernels/kernel.html",
        {
            "kernel": kernel,
            "text": text_of(kernel),
            "origins": origins,
            "verdicts": verdicts[:SHOWN],
            "verdict_count": verdicts.count(),
            "lineage": selectors.lineage(kernel, origins[0].team) if origins else [kernel],
            "children": {
                row.kernel_id: row for row in kernel.children.filter(team__in=teams).select_related("kernel")
            }.values(),
            "rounds": rounds[:SHOWN],
            "round_count": rounds.count(),
            "imported": kernel.imported.select_related("board__report", "board__operator"),
            "requests": ReviewRequest.objects.filter(kernel=kernel, team__in=teams),
            "promotions": kernel.promotions.filter(slot__team__in=teams).select_related(
                "slot__operator", "slot__hardware"
            ),
        },
    )


@page
def source(request: SignedIn, digest: str) -> HttpResponse:
    """The exact bytes, as a file."""
    kernel = selectors.kernel_for(request.user, digest)
    return HttpResponse(
        bytes(kernel.source),
        content_type="text/x-python; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{kernel.operator}-{kernel.short}.py"'},
    )
