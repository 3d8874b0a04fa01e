"""Ways round the gate. Each was tried; the test names what stops it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from gate_attack import promotion_of, refused_by_database, verified
from gate_world import World, heavy, medium

from apps.audit.models import AuditEntry
from apps.core.errors import GateRefused, Invalid, Refused
from apps.kernels.models import Champion, Promotion, Slot, Verdict
from apps.reviews.models import Decision, ReviewRequest
from apps.reviews.selectors import gate_requirements
from apps.reviews.services import gate_sweep, promotion_finish, promotion_start, review_open
from apps.teams.models import RoleGrant
from apps.teams.selectors import reviewer_grant
from apps.teams.services import membership_add, role_grant, role_revoke, user_create


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
                                     reason="x").save, "rollback needs|promotion_kind_complete|no other kind")


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


