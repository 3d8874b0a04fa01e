"""Ways from an imported result to a champion, an incumbent or evidence. Each was tried; a test names what stops it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from gate_attack import promotion_of, refused_by_database, verified
from gate_world import HARDWARE, World, heavy, medium
from report_world import as_file, report

from apps.bridge import api
from apps.campaigns.models import Campaign, Job, Round
from apps.campaigns.services import engine_tell, engine_tell_verdict
from apps.core.errors import Invalid, Refused
from apps.imports.models import ImportedBoard, ImportedKernel, ImportedReport
from apps.imports.services import report_import
from apps.kernels.models import Champion, Promotion, Quarantine, Slot, Verdict
from apps.kernels.services import kernel_store
from apps.kernels.verdicts import foreign_store, verdict_columns, verdict_import
from apps.leaderboards.selectors import board
from apps.reviews.models import ReviewRequest
from apps.reviews.services import review_open


def foreign(world: World, source: bytes, team: Any = None) -> Verdict:
    """A verdict as good as any, made elsewhere, on a kernel of the team's own campaign."""
    own = world.verdict(source)
    assert own.samples is not None
    data = bytes(own.samples.data)
    if team is not None:
        return verdict_import(kernel=own.kernel, team=team, document=own.document, samples=data, workload="llm",
                              origin="elsewhere", by=None)
    return foreign_store(kernel=own.kernel, team=None, document=own.document, workload="llm", purpose="import",
                         columns=verdict_columns(own.document, data), samples=data, origin="elsewhere")


def test_no_service_takes_it_as_evidence(world: World) -> None:
    for team in (None, world.team):
        verdict = foreign(world, medium("3" if team else "4"), team)
        with pytest.raises(Invalid, match=r"not one of your team|imported"):
            review_open(campaign=world.campaign, kernel=verdict.kernel, verdict=verdict, person=world.ada)
        with pytest.raises(Refused, match="was imported"):
            engine_tell_verdict(campaign=world.campaign, fence=world.fence, round_number=0, verdict=verdict)
        with pytest.raises(Refused, match="was imported"):
            engine_tell(campaign=world.campaign, fence=world.fence, verdict=verdict,
                        document=api.evaluated_result(0, verdict.document))
    world.campaign.refresh_from_db()
    assert world.campaign.incumbent_verdict is None and not ReviewRequest.objects.exists()


def test_the_database_lets_no_row_lean_on_it(world: World) -> None:
    verdict = foreign(world, medium(), world.team)
    world.measure_baseline()
    world.round(heavy())
    rounds, campaigns = Round.objects.filter(number=1), Campaign.objects.filter(pk=world.campaign.pk)
    refused_by_database(lambda: rounds.update(verdict=verdict), "never on an imported one")
    refused_by_database(lambda: campaigns.update(incumbent_verdict=verdict), "never on an imported one")
    refused_by_database(lambda: Round.objects.create(
        campaign=world.campaign, number=9, verdict=verdict, state="concluded", started_at=timezone.now(),
        state_since=timezone.now()), "never on an imported one")
    refused_by_database(lambda: Verdict.objects.filter(pk=verdict.pk).update(foreign=False), "never changed")
    refused_by_database(lambda: Verdict.objects.filter(pk=verdict.pk).delete(), "never deleted")
    job = Job.objects.filter(state="succeeded").first()
    assert job is not None
    refused_by_database(lambda: Job.objects.filter(pk=job.pk).update(verdict=verdict), "under its own key")


def test_an_open_job_is_not_answered_by_it(world: World) -> None:
    """A waiting verification is handed an imported verdict, or one that another job made."""
    verdict = foreign(world, medium(), world.team)
    own = Verdict.objects.get(foreign=False)
    job = world.job(verdict.kernel, purpose="promotion")
    for given in (verdict, own):
        refused_by_database(lambda given=given: Job.objects.filter(pk=job.pk).update(
            verdict=given, state="succeeded"), r"under its own key|takes no other row")


def test_a_promotion_does_not_rest_on_it(world: World) -> None:
    request = verified(world, medium(), world.ben)
    verdict = foreign(world.new_campaign(), medium("7"), world.team)
    refused = r"made here|not the one that this request|this slot and kernel"  # whichever guard is asked first
    refused_by_database(promotion_of(request, verdict=verdict).save, refused)
    refused_by_database(promotion_of(request, verdict=verdict, kernel=verdict.kernel).save, refused)
    refused_by_database(lambda: ReviewRequest.objects.filter(pk=request.pk).update(verify_verdict=verdict),
                        "never on an imported one")
    assert not Promotion.objects.exists() and not Champion.objects.exists()


def test_it_puts_no_champion_into_quarantine(world: World) -> None:
    request = world.promote(medium(), world.ben)
    verdict = foreign(world.new_campaign(), medium("8"), world.team)
    refused_by_database(lambda: Quarantine.objects.create(
        slot=request.slot, kernel=request.kernel, promotion=request.promotion, verdict=verdict, reason="they say so",
        at=timezone.now()), "never on an imported one")


def test_a_report_touches_no_slot_campaign_or_ranking(world: World, document: dict[str, Any]) -> None:
    """Even one about the very device, workload and environment class of a slot here."""
    request = world.promote(medium(), world.ben)
    mine = request.promotion.verdict
    document["hardware"] = HARDWARE
    document["environment"]["class"] = mine.environment_class
    for operator in document["operators"]:
        for kernel in operator["kernels"]:
            kernel["verdict"]["hardware"] = HARDWARE
            kernel["verdict"]["environment"]["class"] = mine.environment_class
        for campaign in operator["campaigns"]:
            campaign["goal"]["hardware"] = HARDWARE
            campaign["goal_digest"] = api.digest_document(campaign["goal"])
    before = {model: list(model.objects.order_by("pk").values()) for model in (
        Slot, Champion, Promotion, Campaign, Round, Job, ReviewRequest)}

    def ranks() -> list[tuple[Any, ...]]:
        shown = board(world.vic, operator="rms_norm", backend="numba", hardware=HARDWARE, workload="llm")
        return [(row.rank, row.kernel, row.ratio, row.verdict) for row in shown.rows]

    ranked = ranks()
    report_import(data=as_file(document), file="here.json", by=None)
    assert {model: list(model.objects.order_by("pk").values()) for model in before} == before
    assert ranks() == ranked
    assert "imported" not in Client().get("/api/v1/champions/rms_norm").content.decode()


def test_an_imported_kernel_is_measured_here_like_any_other(world: World, imported: ImportedReport) -> None:
    """Its bytes may start a campaign; its figures do not come along."""
    best = ImportedKernel.objects.get(board__operator__name="rms_norm", name="playbook")
    with pytest.raises(Invalid, match="not one of your team"):
        review_open(campaign=world.campaign, kernel=best.kernel, verdict=best.verdict, person=world.ada)
    own = world.team.slots.get()
    request = ReviewRequest(
        team=world.team, slot=own, campaign=world.campaign, kernel=best.kernel, base=best.kernel, verdict=best.verdict,
        gate_tier="heavy", policy_version=1, conditions={}, conditions_digest="x", opened_at=timezone.now())
    refused_by_database(request.save, "a verdict of its team")


def test_imported_rows_stay_what_they_are(world: World, imported: ImportedReport) -> None:
    board_row = imported.boards.get(operator__name="softmax")
    kernel = board_row.kernels.get(name="playbook")
    for rows, change in ((ImportedReport.objects.filter(pk=imported.pk), {"hardware": HARDWARE}),
                         (ImportedBoard.objects.filter(pk=board_row.pk), {"document": {}}),
                         (ImportedKernel.objects.filter(pk=kernel.pk), {"verdict": None})):
        refused_by_database(lambda rows=rows, change=change: rows.update(**change), "never changed")
        refused_by_database(rows.delete, r"never deleted|FOREIGN KEY|foreign key")
    with connection.cursor() as cursor:
        verb = "INSERT OR REPLACE INTO" if connection.vendor == "sqlite" else "INSERT INTO"
        columns = ("id", "digest", "file", "backend", "hardware", "workload", "environment_class", "evaluator_version",
                   "header", "measured_at", "imported_at")
        values = [imported.pk, imported.digest, "forged.json", "triton", "x", "llm", "x", "1", "{}",
                  imported.measured_at, imported.imported_at]
        refused_by_database(lambda: cursor.execute(
            f"{verb} imports_importedreport ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})",
            values), "never replaced")


def test_a_board_shows_no_verdict_of_ours_as_imported(world: World, imported: ImportedReport) -> None:
    """The other way round: a verdict made here, or a team's, does not become part of somebody's report."""
    own = world.verdict(medium())
    theirs = foreign(world.new_campaign(), medium("5"), world.team)
    for verdict in (own, theirs):
        refused_by_database(lambda verdict=verdict: ImportedKernel.objects.create(
            board=imported.boards.first(), kernel=verdict.kernel, verdict=verdict, name="ours"), "of no team")


def test_nothing_imports_over_the_web(world: World, imported: ImportedReport) -> None:
    client = Client()
    client.force_login(world.admin)
    for model in ("importedreport", "importedboard", "importedkernel"):
        assert client.get(reverse(f"admin:imports_{model}_changelist")).status_code == 200
        assert client.get(reverse(f"admin:imports_{model}_add")).status_code == 403
        row = {"importedreport": ImportedReport, "importedboard": ImportedBoard,
               "importedkernel": ImportedKernel}[model].objects.first()
        assert row is not None
        assert client.post(reverse(f"admin:imports_{model}_change", args=[row.pk]), {"file": "x"}).status_code == 403
        assert client.post(reverse(f"admin:imports_{model}_delete", args=[row.pk]), {"post": "yes"}).status_code == 403
    for address in (f"/leaderboards/imported/{imported.pk}/", f"/leaderboards/softmax/imported/{imported.pk}/"):
        assert client.post(address, {"verdict": "1"}).status_code in (403, 405)


def test_bytes_of_a_report_under_another_operator_are_refused(world: World) -> None:
    """The same source cannot be two kernels."""
    document = report("softmax")
    source = next(iter(document["operators"][0]["sources"].values())).encode()
    other = world.campaign.slot.operator
    kernel_store(source=source, operator=other, backend="numba")
    with pytest.raises(Invalid, match="stored as a kernel of rms_norm"):
        report_import(data=as_file(document), file="x.json", by=None)
    assert not ImportedReport.objects.exists()
