"""Somebody writes to the database itself. Each statement was tried; the test names the guard that refuses it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from gate_attack import promotion_of, refused_by_database, verified
from gate_world import World, heavy, light, medium

from apps.kernels.models import Kernel, Promotion
from apps.reviews import triggers
from apps.reviews.models import Decision, ReviewRequest, Thread, Veto, VetoLift
from apps.reviews.services import thread_open
from apps.reviews.triggers.identity import KEYS, PARTIAL
from apps.teams.models import Membership, RoleGrant, Team, User
from apps.teams.selectors import reviewer_grant


def run(statement: str, values: list[Any] | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or [])


def replace(table: str, **changes: Any) -> None:
    """Write the newest row of a table over itself, with changes."""
    key = KEYS[table][0][0]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} ORDER BY {key} DESC LIMIT 1")
        found = cursor.fetchone()
        row = {**dict(zip([column[0] for column in cursor.description], found, strict=True)), **changes}
        names, marks = ", ".join(f'"{name}"' for name in row), ", ".join(["%s"] * len(row))
        verb, tail = (("INSERT OR REPLACE", "") if connection.vendor == "sqlite"
                      else ("INSERT", f" ON CONFLICT ({key}) DO UPDATE SET {key} = excluded.{key}"))
        cursor.execute(f"{verb} INTO {table} ({names}) VALUES ({marks}){tail}", list(row.values()))


def test_the_keys_are_those_of_the_database(db: None) -> None:
    for table in KEYS:
        with connection.cursor() as cursor:
            found = connection.introspection.get_constraints(cursor, table).values()
        unique = {tuple(sorted(one["columns"])) for one in found if one["unique"] or one["primary_key"]}
        known = {tuple(sorted(key)) for key in [*KEYS[table], *(columns for columns, _ in PARTIAL.get(table, ()))]}
        assert unique == known, table


def test_no_row_is_replaced(world: World) -> None:
    """SQLite's REPLACE deletes the row in its way without asking the trigger that forbids it."""
    request = world.promote(medium(), world.ben)
    assert request.state == "promoted"
    vetoed = world.new_campaign().request(heavy())
    thread_open(request=vetoed, person=world.cem, text="look here", blocking=True)
    world.decide(vetoed, world.ben, "veto")
    VetoLift.objects.create(veto=Veto.objects.get(), by=world.ben, reason="seen again", at=timezone.now())
    rare = {"kernels_quarantine", "reviews_verification", "campaigns_influence", "campaigns_engineresult",
            "campaigns_canarybase", "campaigns_canaryreading", "campaigns_canarydrift",  # tests/apps/canary
            "imports_importedreport", "imports_importedboard", "imports_importedkernel"}  # tests/apps/imports
    refused = set()
    for table in KEYS:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM {table}")
            if cursor.fetchone()[0]:
                refused_by_database(lambda table=table: replace(table), ".")
                refused.add(table)
    assert refused | rare == set(KEYS)


def test_no_row_takes_the_key_of_another(world: World) -> None:
    """Whoever has the key of a reviewer's membership has the role since the beginning."""
    mine, theirs = (Membership.objects.get(user=user).pk for user in (world.ada, world.ben))
    verb = "UPDATE OR REPLACE" if connection.vendor == "sqlite" else "UPDATE"
    refused_by_database(lambda: run(f"{verb} teams_membership SET id = %s WHERE id = %s", [theirs, mine]),
                        "keeps its key")
    refused_by_database(lambda: run("UPDATE teams_membership SET user_id = %s WHERE id = %s", [world.ada.pk, theirs]),
                        "keeps its person and team")
    refused_by_database(lambda: run("DELETE FROM teams_membership WHERE id = %s", [theirs]), "never deleted")
    refused_by_database(lambda: run(f"{verb} teams_user SET id = %s WHERE id = %s", [world.ben.pk, world.ada.pk]),
                        "keeps its key")
    refused_by_database(lambda: run(f"{verb} teams_user SET username = 'ben' WHERE id = %s", [world.ada.pk]),
                        "takes no other row's place")
    first, second = world.request(medium()), world.new_campaign().request(medium("5"))
    refused_by_database(lambda: run(f"{verb} reviews_reviewrequest SET id = %s WHERE id = %s", [first.pk, second.pk]),
                        "keeps its key")


def test_a_role_dated_back_counts_for_nothing_that_is_open(world: World) -> None:
    """A row written by hand with an early date, or a clock that was set back while the role was given."""
    request = world.request(medium())
    membership = Membership.objects.get(user=world.vic)
    for when in (timezone.now() - timedelta(days=9), request.opened_at):
        refused_by_database(lambda when=when: RoleGrant.objects.create(
            membership=membership, role="reviewer", granted_at=when), "after every request that is open")
    grant = RoleGrant.objects.create(membership=membership, role="reviewer", granted_at=timezone.now())
    refused_by_database(lambda: RoleGrant.objects.filter(pk=grant.pk).update(granted_at=when_first()), "history")
    refused_by_database(lambda: RoleGrant.objects.create(
        membership=membership, role="engineer", granted_at=timezone.now() + timedelta(days=1)), "begins now")


def when_first() -> Any:
    return timezone.now() - timedelta(days=9)


def test_a_request_is_not_written_as_if_it_had_gone_further(world: World) -> None:
    asked = verified(world, heavy(), world.ben)
    facts = {field.attname: getattr(asked, field.attname) for field in ReviewRequest._meta.concrete_fields}
    fresh = {**facts, "id": None, "campaign_id": None, "verify_job_id": None, "verify_verdict_id": None,
             "state": "open", "opened_at": timezone.now()}
    for change in ({"state": "verifying"}, {"opened_at": timezone.now() + timedelta(days=1)}, {"policy_version": 7},
                   {"auto": True}, {"kernel_id": asked.base_id}):
        refused_by_database(lambda change=change: ReviewRequest.objects.create(**{**fresh, **change}),
                            "A review request begins open")
    refused_by_database(lambda: ReviewRequest.objects.filter(pk=asked.pk).update(auto=True), "never changes")


def test_decision_with_made_up_moments(world: World) -> None:
    request = world.request(medium())
    now = timezone.now()
    facts = {"request": request, "user": world.ben, "grant": reviewer_grant(world.ben, world.team), "kind": "approve",
             "gate_tier": "medium", "kernel_digest": request.kernel_id, "request_version": 1,
             "reauthenticated_at": now, "at": now}
    day = timedelta(days=1)
    early, late = {"at": now - day, "reauthenticated_at": now - day}, {"at": now + day}
    for change in (early, late, {"reauthenticated_at": now + day}):
        refused_by_database(lambda change=change: Decision.objects.create(**{**facts, **change}),
                            "A decision needs an open request")


def test_kinds_of_promotion_that_ask_for_nobody(world: World) -> None:
    asked = verified(world, heavy())
    refused_by_database(promotion_of(asked, kind="urgent", required_approvals=0).save, "there is no other kind")
    Team.objects.filter(pk=world.team.pk).update(light_auto_promote=True, policy_version=2)
    for tier in ("heavy", "light"):
        by_itself = promotion_of(asked, kind="auto", required_approvals=0, gate_tier=tier, policy_version=2)
        refused_by_database(by_itself.save, "no other kind|needs the review request")
    refused_by_database(promotion_of(asked).save, "present policy|distinct approvals")


def test_rollback_that_nobody_ordered(world: World) -> None:
    first = Promotion.objects.get(request=world.promote(medium(), world.ben))
    second = world.new_campaign()
    verdict = second.answer(second.job(first.kernel, purpose="promotion", against={}))
    row = Promotion(slot=first.slot, kernel=first.kernel, kind="rollback", verdict=verdict, previous=first.kernel,
                    gate_tier="none", required_approvals=0, policy_version=1, by=world.ben, reason="back",
                    restores=first, at=timezone.now())
    refused_by_database(row.save, "not the one that this request or rollback ordered")


def test_policy_changes_only_with_a_version_and_above_the_floors(world: World) -> None:
    team = Team.objects.filter(pk=world.team.pk)
    refused_by_database(lambda: team.update(light_auto_promote=True), "has a new version")
    refused_by_database(lambda: team.update(approvals_medium=5), "has a new version")
    refused_by_database(lambda: team.update(approvals_heavy=1, policy_version=2), "never lowered")


def test_accounts_do_not_become_people(world: World) -> None:
    refused_by_database(lambda: User.objects.filter(pk=world.robot.pk).update(kind="person"), "never becomes a person")
    User.objects.filter(pk=world.vic.pk).update(demo=True)
    refused_by_database(lambda: User.objects.filter(pk=world.vic.pk).update(demo=False), "nor a demo person")


def test_blocking_thread_does_not_go_away(world: World) -> None:
    request = world.request(medium())
    thread = thread_open(request=request, person=world.ben, text="why so?", blocking=True)
    rows = Thread.objects.filter(pk=thread.pk)
    refused_by_database(lambda: rows.update(blocking=False), "keeps what it blocks")
    refused_by_database(lambda: run("DELETE FROM reviews_thread WHERE id = %s", [thread.pk]), "never deleted")
    refused_by_database(lambda: thread.comments.update(text="fine"), "never changed")


def test_veto_is_not_lifted_by_just_anybody(world: World) -> None:
    request = world.request(medium())
    world.decide(request, world.ben, "veto")
    for person in (world.ada, world.cem, world.maintainer, world.admin, world.robot):
        refused_by_database(lambda person=person: VetoLift.objects.create(
            veto=Veto.objects.get(), by=person, reason="mine", at=timezone.now()), "lifted by its author")
    grant = reviewer_grant(world.ben, world.team)
    assert grant is not None
    RoleGrant.objects.filter(pk=grant.pk).update(revoked_at=timezone.now())
    refused_by_database(lambda: VetoLift.objects.create(
        veto=Veto.objects.get(), by=world.ben, reason="mine", at=timezone.now()), "lifted by its author")
    assert VetoLift.objects.create(veto=Veto.objects.get(), by=world.maintainer, reason="gone", at=timezone.now())


def test_a_strangers_trigger_is_noticed(db: None) -> None:
    """A trigger beside the gate's that turns its refusals into silence or writes approvals of its own."""
    if connection.vendor == "sqlite":
        run("CREATE TRIGGER helpful AFTER INSERT ON reviews_decision BEGIN SELECT 1; END")
    else:
        run("CREATE FUNCTION helpful() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'")
        run("CREATE TRIGGER helpful AFTER INSERT ON reviews_decision FOR EACH ROW EXECUTE FUNCTION helpful()")
    assert triggers.missing() == ["helpful"]
    call_command("migrate", verbosity=0, skip_checks=False)
    assert triggers.missing() == ["helpful"]
    run("DROP TRIGGER helpful" + ("" if connection.vendor == "sqlite" else " ON reviews_decision"))
    assert triggers.missing() == []


def test_migrate_puts_missing_guards_back(db: None) -> None:
    """It checks the system first; a check that refused it would lock the door from inside."""
    triggers.lift()
    call_command("migrate", verbosity=0, skip_checks=False)
    assert triggers.missing() == []


@pytest.mark.django_db(transaction=True)
def test_a_table_can_be_rebuilt_under_the_guards() -> None:
    """SQLite refuses to rename a table that a trigger of another one names."""
    call_command("migrate", "reviews", "0002", verbosity=0)
    call_command("migrate", verbosity=0)
    assert triggers.missing() == []


def test_bytes_and_tree_of_a_kernel_stay(world: World) -> None:
    kernel = world.kernel(light())
    refused_by_database(lambda: replace("kernels_kernel", source=heavy()), "exists already")
    refused_by_database(lambda: Kernel.objects.filter(pk=kernel.pk).update(normal_digest="sha256:" + "0" * 64),
                        "never changed")


TAMPERING = {
    "sqlite": (
        "CREATE TRIGGER {name} BEFORE INSERT ON kernels_promotion FOR EACH ROW WHEN 0 BEGIN SELECT 1; END",
        "CREATE TRIGGER {name} AFTER INSERT ON kernels_promotion FOR EACH ROW BEGIN SELECT 1; END",
        "CREATE TRIGGER {name} BEFORE INSERT ON kernels_blob FOR EACH ROW BEGIN SELECT 1; END",
        "CREATE TEMP TRIGGER {name} BEFORE INSERT ON main.kernels_promotion FOR EACH ROW BEGIN SELECT 1; END",
        "CREATE VIEW {name} AS SELECT 1",
    ),
    "postgresql": (
        "CREATE TRIGGER {name} BEFORE INSERT ON kernels_promotion FOR EACH ROW WHEN (false) "
        "EXECUTE FUNCTION {name}()",
        "CREATE TRIGGER {name} AFTER INSERT ON kernels_promotion FOR EACH ROW EXECUTE FUNCTION {name}()",
        "CREATE TRIGGER {name} BEFORE INSERT ON kernels_blob FOR EACH ROW EXECUTE FUNCTION {name}()",
        "CREATE TRIGGER {name} BEFORE INSERT ON kernels_promotion FOR EACH ROW EXECUTE FUNCTION {name}(); "
        "ALTER TABLE kernels_promotion DISABLE TRIGGER {name}",
        "CREATE TRIGGER {name} BEFORE INSERT ON kernels_promotion FOR EACH ROW EXECUTE FUNCTION {name}(); "
        "ALTER TABLE kernels_promotion ENABLE REPLICA TRIGGER {name}",
    ),
}


@pytest.mark.parametrize("way", range(5))
def test_a_guard_that_only_looks_like_one_is_noticed(db: None, way: int) -> None:
    name = "gate_promotion_veto"
    run(f"DROP TRIGGER {name}" + ("" if connection.vendor == "sqlite" else " ON kernels_promotion"))
    run(TAMPERING[connection.vendor][way].format(name=name))
    assert name in triggers.missing()
