"""One kernel, one verdict."""

from __future__ import annotations

import json

from django.db.models import F
from django.http import HttpResponse

from apps.campaigns.models import Round
from apps.campaigns.screens.round import findings_of, text_of
from apps.core.paging import SignedIn, page, show
from apps.core.plotting import to_json
from apps.kernels import selectors
from apps.kernels.plots import distribution
from apps.kernels.screens.verdicts import sheet_of
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


@page
def verdict_page(request: SignedIn, pk: int) -> HttpResponse:
    """A verdict whole: outcome, stages, timing, correctness, resources, findings, environment."""
    verdict = selectors.verdict_for(request.user, pk)
    round_row = verdict.rounds.select_related("campaign").first()
    sheet = sheet_of(verdict, goal=round_row.campaign.goal if round_row else None, samples=True)
    return show(
        request,
        "kernels/verdict.html",
        {
            "verdict": verdict,
            "sheet": sheet,
            "round": round_row,
            "findings": findings_of(verdict.document),
            "text": text_of(verdict.kernel),
            "document": verdict.document,
            "flagged": [reason["line"] for reason in verdict.document.get("reasons", []) if reason.get("line")],
            "figure": to_json(distribution(sheet.sides, sheet.role_word)) if sheet and sheet.sides else None,
        },
    )


@page
def verdict_document(request: SignedIn, pk: int) -> HttpResponse:
    """The stored document."""
    verdict = selectors.verdict_for(request.user, pk)
    return HttpResponse(json.dumps(verdict.document, indent=1), content_type="application/json")
