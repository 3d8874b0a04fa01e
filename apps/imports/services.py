"""Importing a report: everything that can be computed again is, before anything is written; once per document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.audit.services import audit_record
from apps.bridge import api
from apps.core.errors import Invalid
from apps.imports.models import ImportedBoard, ImportedKernel, ImportedReport
from apps.kernels.models import Kernel, Operator
from apps.kernels.services import hardware_register, kernel_store, operators_sync
from apps.kernels.verdicts import foreign_store, verdict_columns
from apps.teams.models import User

KEPT_APART = ("sources", "kernels")
HEADER = ("version", "began", "finished", "complete", "backend", "hardware", "workload", "environment", "evaluator",
          "seconds", "protocol", "missing", "versions", "roofs", "figures", "means")
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """A kernel of a report with what was computed here: its tier, and its verdict's columns where it has a verdict."""

    document: Document
    tier: str
    columns: Document | None
    samples: bytes | None


@dataclass(slots=True)
class Prepared:
    """A report, checked and recomputed, ready to be written."""

    facts: api.ReportFacts
    kernels: dict[str, list[Judged]] = field(default_factory=dict)  # by operator


def report_import(
    *, data: bytes, file: str, by: User | None, on_progress: Callable[[str], None] = lambda text: None,
) -> tuple[ImportedReport, bool]:
    """Keep a report; the row, and whether it is new. The same document again finds the first row and writes nothing.

    Verdicts become ``foreign`` rows of no team: on pages of their own, on no ranking, in no slot, no evidence.

    Raises:
        Invalid: the file is no report, contradicts itself, or claims what its own samples and bytes do not give.
    """
    try:
        known = ImportedReport.objects.filter(digest=api.report_digest(data)).first()
        if known is not None:
            return known, False
        facts = api.report_check(data)
    except api.BridgeError as error:
        raise Invalid(error.text, key=error.key, code=error.code) from error
    prepared = _prepare(facts, on_progress)  # seconds of resampling: never inside the transaction
    operators = {row.name: row for row in operators_sync()}
    document = facts.document
    stored = _sources(document, operators)
    with transaction.atomic():
        hardware_register(name=document["hardware"], backends=[document["backend"]], facts=_digest(document))
        report = ImportedReport.objects.create(
            digest=facts.digest, file=file[:200], backend=document["backend"], hardware=document["hardware"],
            workload=document["workload"], environment_class=document["environment"]["class"],
            evaluator_version=document["evaluator"], measured_at=_moment(document["began"]),
            imported_at=timezone.now(), imported_by=by, header={key: document.get(key) for key in HEADER},
        )
        for place, operator in enumerate(document["operators"]):
            _board(report, operators[operator["name"]], place, operator, prepared, stored[operator["name"]])
        audit_record(verb="report.imported", subject=report, actor=by, team=None, digest=facts.digest, reason=file,
                     data={"hardware": report.hardware, "operators": [one["name"] for one in document["operators"]]})
    return report, True


def _prepare(facts: api.ReportFacts, on_progress: Callable[[str], None]) -> Prepared:
    prepared = Prepared(facts)
    for operator in facts.document["operators"]:
        on_progress(f"{operator['name']}: {len(operator['kernels'])} kernels")
        try:
            prepared.kernels[operator["name"]] = [
                _judge(facts.document["backend"], operator, kernel) for kernel in operator["kernels"]]
        except api.BridgeError as error:
            raise Invalid(f"{operator['name']}: {error.text} Nothing was imported.", code=error.code) from error
    return prepared


def _judge(backend: str, operator: Document, kernel: Document) -> Judged:
    """Tier from the bytes, verdict from its samples.

    Raises:
        Invalid: the report says otherwise.
    """
    base = next((one for one in operator["kernels"] if one["agent"] is None), kernel)
    sides = [operator["sources"][one["digest"]].encode("utf-8") for one in (base, kernel)]
    tier = api.classify(sides[0], sides[1], operator["name"], backend).tier
    if kernel["tier"] not in (None, tier):
        raise Invalid(f"{kernel['name']} of {operator['name']} is called {kernel['tier']}; from its bytes it is "
                      f"{tier}. Nothing was imported.", key="tier", code="report_differs")
    verdict = kernel["verdict"]
    if verdict is None:
        return Judged(kernel, tier, None, None)
    samples = api.canonical(kernel["samples"]) if kernel["samples"] is not None else None
    return Judged(kernel, tier, verdict_columns(verdict, samples), samples)


def _sources(document: Document, operators: dict[str, Operator]) -> dict[str, dict[str, Kernel]]:
    """Every source as a kernel row, by operator and digest. Outside the transaction: a search leaves hundreds, each is
    parsed, and the database's only writer must not wait for that. A row that nothing links to is seen by nobody."""
    return {one["name"]: {
        digest: kernel_store(source=source.encode("utf-8"), operator=operators[one["name"]],
                             backend=document["backend"])
        for digest, source in one["sources"].items()} for one in document["operators"]}


def _board(report: ImportedReport, operator: Operator, place: int, document: Document, prepared: Prepared,
           stored: dict[str, Kernel]) -> None:
    kept = {key: value for key, value in document.items() if key not in KEPT_APART}
    board = ImportedBoard.objects.create(report=report, operator=operator, place=place, document=kept)
    named: set[str] = set()
    for judged in prepared.kernels[document["name"]]:
        one, verdict = judged.document, None
        named.add(one["digest"])
        if judged.columns is not None:
            verdict = foreign_store(
                kernel=stored[one["digest"]], team=None, document=one["verdict"], columns=judged.columns,
                samples=judged.samples, workload=report.workload, purpose="import",
                origin=f"Imported from {report.file}, measured on {report.hardware}.")
        ImportedKernel.objects.create(board=board, kernel=stored[one["digest"]], verdict=verdict, name=one["name"],
                                      agent=one["agent"] or "", round=one["round"], tier=judged.tier)
    ImportedKernel.objects.bulk_create(
        ImportedKernel(board=board, kernel=row) for digest, row in stored.items() if digest not in named)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else timezone.make_aware(moment)


def _digest(document: Document) -> Document:
    try:
        return api.hardware_digest(document["hardware"])
    except api.BridgeError:
        return {}
