"""Imported results: a board of each operator, and the report that they came with."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.campaigns.screens.facts import fact_rows
from apps.core.paging import refusals, show
from apps.core.plotting import to_json
from apps.imports import plots, selectors
from apps.imports.models import ImportedBoard, ImportedKernel
from apps.imports.screens import board as screen
from apps.imports.screens import campaigns


def closed(request: HttpRequest) -> bool:
    """Whether this caller has to sign in first."""
    return not (request.user.is_authenticated or settings.PUBLIC_BOARDS)


@require_safe
@refusals
def board_page(request: HttpRequest, operator: str, report: int) -> HttpResponse:
    """One operator of an imported report: kernels beside libraries, curves, predictions, logs."""
    if closed(request):
        return redirect_to_login(request.get_full_path())
    row = selectors.imported_board(request.user, operator, report)
    axis = request.GET.get("axis", "evaluations")
    axis = axis if axis in campaigns.AXES else "evaluations"
    shown, sheets = screen.blocks(row.document), campaigns.sheets(row.document, axis)
    own = request.user.is_authenticated
    return show(request, "imports/board.html", {
        "board": row, "report": row.report, "header": row.report.header, "document": row.document, "blocks": shown,
        "standings": screen.standings(row.document), "kernels": kernels_of(row), "own": own, "sheets": sheets,
        "axis": axis, "axes": [(name, words) for name, (_, words) in campaigns.AXES.items()],
        "lead": selectors.mean([block.best["ratio"]["ratio"] for block in shown if block.best]),
        "sisters": selectors.imported_keys(request.user, report=row.report),
        "others": [key for key in selectors.imported_keys(request.user, operator=row.operator)
                   if key.report != row.report_id],
        "roofs": to_json(plots.roofs(shown)),
        "curves": to_json(plots.curves([sheet.curve for sheet in sheets], campaigns.AXES[axis][1]))
        if any(sheet.curve.points for sheet in sheets) else None,
        "tall": sum(len(block.cells) > 0 for block in shown) > 4,
    })


def kernels_of(board: ImportedBoard) -> dict[str, ImportedKernel]:
    """The kernels that boards show, by name, with the figures of their verdicts."""
    rows = board.kernels.exclude(name="").select_related("kernel", "verdict")
    return {row.name: row for row in rows}


@require_safe
@refusals
def report_page(request: HttpRequest, pk: int) -> HttpResponse:
    """A whole report: what was measured, on what, with which versions, and which figures were reached."""
    if closed(request):
        return redirect_to_login(request.get_full_path())
    report = selectors.report_for(request.user, pk)
    header: dict[str, Any] = report.header
    return show(request, "imports/report.html", {
        "report": report, "header": header, "keys": selectors.imported_keys(request.user, report=report),
        "versions": sorted(header["versions"].items()), "environment": fact_rows(environment(header["environment"])),
        "reached": sum(figure["reached"] is True for figure in header["figures"]),
    })


def environment(document: dict[str, Any]) -> dict[str, Any]:
    """The environment without what stands elsewhere on the page."""
    return {name: value for name, value in document.items() if name not in ("class", "packages", "clocks")}
