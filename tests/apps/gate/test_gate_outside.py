"""Ways round the gate by evidence, by settings and from outside. Each was tried; the test names what stops it."""

from __future__ import annotations

import json
import uuid

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone
from gate_attack import promotion_of, refused_by_database, verified
from gate_world import HARDWARE, World, heavy, medium, verdict_document

from apps.campaigns.jobs.services import job_complete, job_lease
from apps.core.errors import Invalid, Refused
from apps.kernels.models import Kernel, Promotion, Verdict
from apps.kernels.verdicts import verdict_import
from apps.reviews import triggers
from apps.reviews.models import Decision, ReviewRequest, Switches
from apps.reviews.selectors import gate_requirements
from apps.reviews.services import gate_prepare, gate_sweep, review_open
from apps.teams.selectors import reviewer_grant
from apps.teams.services import token_create


def test_forged_verdict_without_a_lease(world: World) -> None:
    kernel = world.kernel(medium())
    job = world.job(kernel)
    document, _ = verdict_document(job)
    columns = {"outcome": "passed", "comparison": "faster", "hardware": HARDWARE, "environment_class": "x",
               "evaluator_version": "1.0", "operator_version": "1", "isolation": 3, "evidence": "bounded",
               "recomputed": True}
    for key in (None, job.pk, uuid.uuid4()):
        refused_by_database(lambda key=key: Verdict.objects.create(
            team=world.team, kernel=kernel, purpose="round", workload="llm", document=document, job_key=key, **columns),
            "only for a job that a worker holds")


def test_forged_comparison_is_recomputed_from_raw_samples(world: World) -> None:
    """A worker with an open lease that claims more than its samples show, or names other samples."""
    world.job(world.kernel(medium()))
    job = job_lease(hardware=HARDWARE, backends=["numba"])
    document, samples = verdict_document(job, ratios={"incumbent": 1.001})
    assert samples is not None
    forged = {**document, "comparison": "faster"}
    with pytest.raises(Invalid, match="its raw samples say 'cannot_tell'"):
        job_complete(job_id=job.pk, fence=job.fence, document=forged, samples=samples)
    forged = json.loads(json.dumps(document))
    forged["timing"]["overall"]["incumbent"]["ratio"] = 1.9
    with pytest.raises(Invalid, match="not those of the raw samples"):
        job_complete(job_id=job.pk, fence=job.fence, document=forged, samples=samples)
    with pytest.raises(Invalid, match="not those that the verdict names"):
        job_complete(job_id=job.pk, fence=job.fence, document=document, samples=samples + b" ")
    with pytest.raises(Invalid, match="is about"):
        job_complete(job_id=job.pk, fence=job.fence, document={**document, "kernel": "sha256:" + "1" * 64},
                     samples=samples)
    assert not Verdict.objects.exists()


def test_imported_verdict_is_foreign_for_good(world: World) -> None:
    kernel = world.kernel(medium())
    document, samples = verdict_document(world.job(kernel))
    verdict = verdict_import(kernel=kernel, team=world.team, document=document, samples=samples, workload="llm",
                             origin="export of another installation", by=world.ada)
    assert verdict.foreign
    with pytest.raises(Invalid, match="imported"):
        review_open(campaign=world.campaign, kernel=kernel, verdict=verdict, person=world.ada)
    refused_by_database(lambda: Verdict.objects.filter(pk=verdict.pk).update(foreign=False), "never changed")


def test_source_that_changed_on_disk_is_noticed(world: World) -> None:
    """With the guards lifted by somebody who owns the database, the digest still gives it away."""
    request = world.request(medium())
    world.decide(request, world.ben)
    triggers.lift()
    Kernel.objects.filter(pk=request.kernel_id).update(source=heavy())
    request = ReviewRequest.objects.get(pk=request.pk)
    lines = {line.code: line.state for line in gate_requirements(request)}
    assert (lines["bytes"], lines["triggers"]) == ("error", "not_met")
    gate_sweep()
    request.refresh_from_db()
    assert request.state == "stale"
    assert gate_prepare() == [rule.name for rule in triggers.RULES]


def test_missing_trigger_stops_promotions(world: World) -> None:
    request = world.request(medium())
    world.decide(request, world.ben)
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER gate_promotion_veto" + (
            "" if connection.vendor == "sqlite" else " ON kernels_promotion"))
    assert gate_prepare() == ["gate_promotion_veto"]
    gate_sweep()
    request.refresh_from_db()
    assert request.state == "approved"
    triggers.install()
    assert world.verify(request).state == "promoted"


def test_self_review_only_with_the_setting_and_one_active_person(world: World) -> None:
    mine = world.new_campaign(starter=world.dia)
    request = mine.request(medium(), person=world.dia)
    big = world.new_campaign(starter=world.dia)
    heavy_request = big.request(heavy(), person=world.dia)
    with override_settings(SELF_REVIEW=True):
        with pytest.raises(Refused, match="contributor"):
            world.decide(request, world.dia)
        type(world.dia).objects.exclude(pk=world.dia.pk).update(is_active=False)
        gate_prepare()
        with pytest.raises(Refused, match="never covers a heavy change"):
            world.decide(heavy_request, world.dia)
        decision = world.decide(request, world.dia)
        assert decision.self_review
        assert world.verify(request).state == "promoted"
    assert Promotion.objects.get().self_reviewed


def test_self_review_without_the_setting(world: World) -> None:
    mine = world.new_campaign(starter=world.dia)
    request = mine.request(medium(), person=world.dia)
    type(world.dia).objects.exclude(pk=world.dia.pk).update(is_active=False)
    with pytest.raises(Refused, match="Nobody else"):
        world.decide(request, world.dia)
    Switches.objects.update(self_review=False)
    facts = {"request": request, "user": world.dia, "grant": reviewer_grant(world.dia, world.team), "kind": "approve",
             "gate_tier": "medium", "kernel_digest": request.kernel_id, "request_version": 1, "self_review": True,
             "reauthenticated_at": timezone.now(), "at": timezone.now()}
    refused_by_database(lambda: Decision.objects.create(**facts), "no contributor")


def test_demo_decisions_count_for_nothing_once_the_switch_is_off(world: World) -> None:
    type(world.ben).objects.filter(pk=world.ben.pk).update(demo=True)
    world.ben.refresh_from_db()
    request = world.request(medium())
    with override_settings(DEMO=True):
        gate_prepare()
        assert world.decide(request, world.ben).demo
        request.refresh_from_db()
        assert request.state == "approved"
    gate_sweep()
    request.refresh_from_db()
    assert (request.state, request.cause_code) == ("stale", "approval_lost")
    late = verified_demo(world)
    refused_by_database(promotion_of(late).save, "distinct approvals")


def verified_demo(world: World) -> ReviewRequest:
    with override_settings(DEMO=True):
        request = verified(world.new_campaign(), medium("9"), world.ben)
    gate_prepare()
    return request


def test_admin_shows_and_changes_nothing(world: World) -> None:
    request = world.request(medium())
    client = Client()
    client.force_login(world.admin)
    assert client.get(reverse("admin:reviews_reviewrequest_changelist")).status_code == 200
    for model in ("kernels_promotion", "kernels_champion", "reviews_decision", "teams_rolegrant"):
        assert client.get(reverse(f"admin:{model}_add")).status_code == 403
    change = reverse("admin:reviews_reviewrequest_change", args=[request.pk])
    assert client.post(change, {"state": "approved"}).status_code == 403
    delete = reverse("admin:reviews_reviewrequest_delete", args=[request.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 403
    request.refresh_from_db()
    assert request.state == "open"


def test_api_token_decides_nothing_anywhere(world: World) -> None:
    """A reviewer's own token opens no page that decides, and no API address writes to a review."""
    request = world.request(medium())
    _, secret = token_create(team=world.team, user=world.ben, name="t", by=world.maintainer, can_run_campaigns=True)
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    page = client.post(f"/reviews/{request.pk}/decide/", {"kind": "approve", "digest": request.kernel_id})
    assert page.status_code in (302, 403, 404)
    assert client.post("/api/v1/champions/rms_norm").status_code == 405
    assert not Decision.objects.exists()
