"""Ways round the gate. Each was tried; the test names what stops it."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone
from gate_world import HARDWARE, World, heavy, medium, verdict_document

from apps.audit.models import AuditEntry
from apps.campaigns.jobs.services import job_complete, job_lease
from apps.core.errors import GateRefused, Invalid, Refused
from apps.kernels.models import Champion, Kernel, Promotion, Slot, Verdict
from apps.kernels.verdicts import verdict_import
from apps.reviews import triggers
from apps.reviews.models import Decision, ReviewRequest, Switches
from apps.reviews.selectors import gate_requirements
from apps.reviews.services import gate_prepare, gate_sweep, promotion_finish, promotion_start, review_open
from apps.teams.models import RoleGrant
from apps.teams.selectors import reviewer_grant
from apps.teams.services import membership_add, role_grant, role_revoke, token_create, user_create


def refused_by_database(action: Any, match: str) -> None:
    with pytest.raises(IntegrityError, match=match), transaction.atomic():
        action()


def verified(world: World, source: bytes, *approvers: Any) -> ReviewRequest:
    """A request in verification whose verification passed; approvals as given, forced through the states."""
    request = world.request(source)
    for person in approvers:
        world.decide(request, person)
    request.refresh_from_db()
    if request.state == "open":
        ReviewRequest.objects.filter(pk=request.pk).update(state="approved")
    job = world.job(request.kernel, purpose="promotion", against={"baseline": bytes(request.base.source)})
    ReviewRequest.objects.filter(pk=request.pk).update(state="verifying", verify_job=job)
    world.answer(job)
    request.refresh_from_db()
    return request


def promotion_of(asked: ReviewRequest, **changes: Any) -> Promotion:
    facts = {
        "slot": asked.slot, "kernel": asked.kernel, "kind": "reviewed", "request": asked,
        "verdict": asked.verify_job.verdict, "previous": None, "gate_tier": asked.gate_tier,
        "required_approvals": 2 if asked.gate_tier == "heavy" else 1, "policy_version": 1, "at": timezone.now(),
    }
    return Promotion(**{**facts, **changes})


def test_direct_service_call_without_approvals(world: World) -> None:
    request = world.request(medium())
    with pytest.raises(GateRefused, match="0 of 1 approvals"):
        promotion_start(request=request)
    assert promotion_finish(request=request) is None
    assert not Promotion.objects.exists()


def test_forged_state_does_not_replace_approvals(world: World) -> None:
    """Even a request pushed into verification by hand is not promoted, and says why."""
    request = verified(world, medium())
    assert promotion_finish(request=request) is None
    request.refresh_from_db()
    assert request.state == "stale"
    assert "approvals" in request.cause
    assert not Promotion.objects.exists()


def test_orm_create_without_approvals(world: World) -> None:
    request = verified(world, medium())
    refused_by_database(promotion_of(request).save, "distinct approvals")
    request = verified(world.new_campaign(), heavy(), world.ben)
    refused_by_database(promotion_of(request).save, "distinct approvals")


def test_fewer_required_approvals_or_a_lower_tier(world: World) -> None:
    request = verified(world, heavy(), world.ben)
    refused_by_database(promotion_of(request, required_approvals=1).save, "promotion_heavy_needs_two|fewer approvals")
    refused_by_database(promotion_of(request, gate_tier="medium", required_approvals=1).save, "review request")
    refused_by_database(promotion_of(request, kind="auto", gate_tier="light", required_approvals=0).save,
                        "review request|light change promotes by itself")
    refused_by_database(promotion_of(request, kind="rollback", request=None, required_approvals=0, by=world.ben,
                                     reason="x").save, "rollback needs|promotion_kind_complete")


def test_raw_sql_insert(world: World) -> None:
    request = verified(world, medium())
    with pytest.raises(IntegrityError, match="distinct approvals"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO kernels_promotion (slot_id, kernel_id, kind, request_id, verdict_id, gate_tier, "
            "required_approvals, policy_version, self_reviewed, reason, at) "
            "VALUES (%s, %s, 'reviewed', %s, %s, 'medium', 1, 1, FALSE, '', %s)",
            [request.slot_id, request.kernel_id, request.pk, request.verify_job.verdict_id, timezone.now()],
        )


def test_raw_sql_update_and_delete_of_history(world: World) -> None:
    world.promote(medium(), world.ben)
    rows = {
        "kernels_promotion": ("kernel_id", "'sha256:0'"), "reviews_decision": ("kind", "'reject'"),
        "audit_auditentry": ("verb", "'nothing'"), "kernels_verdict": ("comparison", "'faster'"),
        "kernels_kernel": ("source", "'x'"), "campaigns_engineresult": ("kind", "'x'"),
        "stream_event": ("kind", "'x'"), "kernels_contribution": ("user_id", "1"),
    }
    for table, (column, value) in rows.items():
        for statement in (f"UPDATE {table} SET {column} = {value}", f"DELETE FROM {table}"):
            with pytest.raises(IntegrityError, match="never"), transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(statement)
    for model in (Promotion, Decision, AuditEntry, Verdict):
        refused_by_database(model.objects.all().delete, "never deleted|referenced")


def test_pointer_and_slot_cannot_be_moved_by_hand(world: World) -> None:
    world.promote(medium(), world.ben)
    other = world.kernel(medium("7"))
    champion = Champion.objects.get()
    refused_by_database(lambda: Champion.objects.update(kernel=other), "newest promotion")
    empty = Slot.objects.create(team=world.team, operator=champion.slot.operator, backend="numba",
                                hardware=champion.slot.hardware, workload="other")
    refused_by_database(lambda: Champion.objects.create(slot=empty, kernel=other, promotion=champion.promotion,
                                                        since=timezone.now()), "newest promotion")
    refused_by_database(lambda: Slot.objects.filter(pk=empty.pk).update(state="champion"), "only through a promotion")


def test_approval_by_a_contributor(world: World) -> None:
    """Who started the campaign, and who edited the kernel, may not decide; ORM and SQL are refused too."""
    mine = world.new_campaign(starter=world.dia)
    request = mine.request(medium(), person=world.dia)
    with pytest.raises(Refused, match=r"started .* so you are a contributor\. Ben and Cem may"):
        world.decide(request, world.dia)
    grant = reviewer_grant(world.dia, world.team)
    facts = {"request": request, "user": world.dia, "grant": grant, "kind": "approve", "gate_tier": "medium",
             "kernel_digest": request.kernel_id, "request_version": 1, "reauthenticated_at": timezone.now(),
             "at": timezone.now()}
    refused_by_database(lambda: Decision.objects.create(**facts), "no contributor")
    refused_by_database(lambda: Decision.objects.create(**{**facts, "user": world.ben}), "no contributor")


def test_renaming_a_local_does_not_wash_a_hand_off_a_kernel(world: World) -> None:
    """Dia's campaign makes it, Ada's campaign submits it with another name for a local: Dia stays a contributor."""
    world.new_campaign(starter=world.dia).kernel(medium("8"))
    request = world.request(medium("8").replace(b"spare = 8", b"other = 8"))
    with pytest.raises(Refused, match="contributor"):
        world.decide(request, world.dia)
    facts = {"request": request, "user": world.dia, "grant": reviewer_grant(world.dia, world.team), "kind": "approve",
             "gate_tier": "medium", "kernel_digest": request.kernel_id, "request_version": 1,
             "reauthenticated_at": timezone.now(), "at": timezone.now()}
    refused_by_database(lambda: Decision.objects.create(**facts), "no contributor")


def test_verdict_under_a_looser_goal_opens_no_request(world: World) -> None:
    loose = world.new_campaign(limits={**world.campaign.goal["limits"], "cv": 0.5})
    verdict = loose.verdict(medium())
    with pytest.raises(Invalid, match="under another goal"):
        review_open(campaign=world.campaign, kernel=verdict.kernel, verdict=verdict, person=world.ada)


def test_win_that_only_the_verification_finds_suspicious_is_not_promoted(world: World) -> None:
    request = world.request(medium())
    world.decide(request, world.ben)
    request = world.verify(request, suspicious=("3.1x the best library",))
    assert (request.state, request.cause_code) == ("stale", "suspicious")
    assert not Promotion.objects.exists()


def test_commenter_counts_as_contributor_of_a_heavy_change_only(world: World) -> None:
    world.measure_baseline()
    world.round(heavy("1"))
    first = ReviewRequest.objects.filter(campaign=world.campaign).first() or review_open(
        campaign=world.campaign, kernel=world.campaign.incumbent, verdict=world.campaign.incumbent_verdict)
    world.decide(first, world.ben, "request_changes", comment="Unroll it twice.")
    world.campaign.refresh_from_db()
    verdict = world.round(heavy("2"))
    second = review_open(campaign=world.campaign, kernel=verdict.kernel, verdict=verdict)
    assert second.answers == first
    with pytest.raises(Refused, match="wrote the comment it was built from"):
        world.decide(second, world.ben)
    assert "Ben" not in next(r.sentence for r in gate_requirements(second) if r.code == "approvals").partition("may")[0]


def test_role_granted_after_the_request_opened(world: World) -> None:
    request = world.request(medium())
    late = user_create(username="late", password="a long password", name="Late")
    membership_add(team=world.team, user=late, roles=["reviewer"], by=world.maintainer)
    with pytest.raises(Refused, match="became a reviewer after"):
        world.decide(request, late)
    facts = {"request": request, "user": late, "grant": reviewer_grant(late, world.team), "kind": "approve",
             "gate_tier": "medium", "kernel_digest": request.kernel_id, "request_version": 1,
             "reauthenticated_at": timezone.now(), "at": timezone.now()}
    refused_by_database(lambda: Decision.objects.create(**facts), "since before it opened")
    refused_by_database(
        lambda: RoleGrant.objects.filter(membership__user=late).update(granted_at=timezone.now() - timedelta(days=9)),
        "otherwise history")


def test_approval_under_a_role_taken_away_no_longer_counts(world: World) -> None:
    request = world.request(medium())
    world.decide(request, world.ben)
    role_revoke(team=world.team, user=world.ben, role="reviewer", by=world.maintainer)
    gate_sweep()
    request.refresh_from_db()
    assert (request.state, request.cause_code) == ("stale", "approval_lost")


def test_role_taken_away_and_given_back_does_not_revive_the_approval(world: World) -> None:
    request = world.request(heavy())
    world.decide(request, world.ben)
    role_revoke(team=world.team, user=world.ben, role="reviewer", by=world.maintainer)
    role_grant(team=world.team, user=world.ben, role="reviewer", by=world.maintainer)
    world.decide(request, world.cem)
    request.refresh_from_db()
    assert request.state == "open"


def test_role_lost_during_verification_promotes_nothing(world: World) -> None:
    request = world.request(medium())
    world.decide(request, world.ben)
    gate_sweep()
    role_revoke(team=world.team, user=world.ben, role="reviewer", by=world.maintainer)
    request.refresh_from_db()
    world.answer(request.verify_job)
    gate_sweep()
    request.refresh_from_db()
    assert request.state == "stale"
    assert not Promotion.objects.exists()


def test_deactivated_reviewer_does_not_count(world: World) -> None:
    request = verified(world, medium(), world.ben)
    world.ben.is_active = False
    world.ben.save()
    refused_by_database(promotion_of(request).save, "distinct approvals")


@pytest.mark.parametrize("who", ["ada", "vic", "maintainer", "admin", "robot", "stranger"])
def test_nobody_without_the_reviewer_role_decides(world: World, who: str) -> None:
    request = world.request(medium())
    person = getattr(world, who)
    for kind in ("approve", "request_changes", "reject", "veto"):
        with pytest.raises(Refused):
            world.decide(request, person, kind)
    assert not Decision.objects.exists()


def test_service_account_cannot_hold_the_role(world: World) -> None:
    with pytest.raises(Refused, match="only persons decide"):
        role_grant(team=world.team, user=world.robot, role="reviewer", by=world.maintainer)


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
