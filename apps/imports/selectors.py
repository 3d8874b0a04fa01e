"""Reading imported results. Seen like boards: by everybody signed in, by everybody at all where boards are public."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import exp, log
from typing import Any

from django.db.models import F

from apps.core.errors import NotFound, Refused
from apps.imports.models import ImportedBoard, ImportedReport
from apps.teams import policies


@dataclass(frozen=True, slots=True)
class ImportedKey:
    """An imported board as lists show it. ``lead`` is the geometric mean over shapes of best library / our best;
    ``newest``: no later report covers the same operator, device, workload and environment class."""

    operator: str
    backend: str
    hardware: str
    workload: str
    environment_class: str
    report: int
    file: str
    measured_at: datetime
    shapes: int
    lead: float | None
    newest: bool


def _may_see(user: Any) -> None:
    why = policies.may_see_boards(user)
    if why:
        raise Refused(why, code="sign_in")


def reports(user: Any) -> list[ImportedReport]:
    """All imported reports, newest measurement first.

    Raises:
        Refused: not signed in, and boards are not public.
    """
    _may_see(user)
    return list(ImportedReport.objects.all())


def report_for(user: Any, pk: int) -> ImportedReport:
    """One report.

    Raises:
        Refused: as above. NotFound: there is none.
    """
    _may_see(user)
    row = ImportedReport.objects.filter(pk=pk).first()
    if row is None:
        raise NotFound("There is no such imported report. The leaderboards page lists those that exist.")
    return row


def imported_keys(user: Any, **filters: Any) -> list[ImportedKey]:
    """Imported boards in the order of their reports; ``filters`` are of ``ImportedBoard``. Documents stay unread."""
    _may_see(user)
    rows = ImportedBoard.objects.filter(**filters).defer("document").annotate(
        best=F("document__best")).select_related("report", "operator").order_by("-report__measured_at", "-report_id",
                                                                              "place")
    found: list[ImportedKey] = []
    seen: set[tuple[str, ...]] = set()
    for row in rows:
        report = row.report
        key = (row.operator.name, report.backend, report.hardware, report.workload, report.environment_class)
        found.append(ImportedKey(*key, report=report.pk, file=report.file, measured_at=report.measured_at,
                                 shapes=len(row.best), lead=mean([one["ratio"]["ratio"] for one in row.best]),
                                 newest=key not in seen))
        seen.add(key)
    return found


def imported_board(user: Any, operator: str, report: int) -> ImportedBoard:
    """One operator of a report, with its kernels and their verdicts.

    Raises:
        Refused: not signed in, and boards are not public. NotFound: there is none.
    """
    _may_see(user)
    row = ImportedBoard.objects.select_related("report", "operator").filter(
        operator__name=operator, report_id=report).first()
    if row is None:
        raise NotFound("There is no such imported board. The leaderboards page lists those that exist.")
    return row


def mean(ratios: list[float]) -> float | None:
    """Geometric mean; ``None`` of nothing."""
    return exp(sum(log(one) for one in ratios) / len(ratios)) if ratios else None
