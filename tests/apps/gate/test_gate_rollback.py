"""Rollback, quarantine, and champions under a new evaluator."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from gate_world import World, medium

from apps.audit.models import AuditEntry
from apps.core.errors import Invalid, Refused
from apps.kernels.models import Champion, Promotion, Slot
from apps.reviews.models import Verification
from apps.reviews.services import champion_quarantine, champions_recheck, gate_sweep, rollback_start, slot_empty
from apps.teams.services import role_revoke

OLD = timedelta(minutes=15, seconds=1)


@pytest.fixture
def twice(world: World) -> tuple[World, Promotion]:
    """A slot with two promotions; the first can be restored."""
    first = world.promote(medium("1"), world.ben)
    world.new_campaign().promote(medium("2"), world.cem)
    return world, first.promotion


def slot_of(world: World) -> Slot:
    return Slot.objects.get(pk=world.campaign.slot_id)


def back(world: World, promotion: Promotion, **changes: Any) -> Verification:
    return rollback_start(**{"slot": slot_of(world), "promotion": promotion, "person": world.ben,
                             "reason": "slower in serving", "reauthenticated_at": timezone.now(), **changes})


def finish(world: World, row: Verification, **facts: Any) -> Verification:
    world.answer(row.job, **facts)
    gate_sweep()
    row.refresh_from_db()
    return row


def test_rollback_restores_a_former_champion_by_a_promotion_of_its_own(twice: tuple[World, Promotion]) -> None:
    world, first = twice
    row = finish(world, back(world, first))
    assert row.state == "done"
    newest = Promotion.objects.first()
    assert newest is not None
    assert (newest.kind, newest.kernel_id) == ("rollback", first.kernel_id)
    assert (newest.restores, newest.by) == (first, world.ben)
    assert Champion.objects.get().kernel_id == first.kernel_id
    assert Promotion.objects.count() == 3
    assert AuditEntry.objects.filter(verb="promotion.rollback", reason="slower in serving").exists()


def test_rollback_needs_a_reason_a_former_champion_and_passes_verification(twice: tuple[World, Promotion]) -> None:
    world, first = twice
    with pytest.raises(Invalid, match="needs a reason"):
        back(world, first, reason=" ")
    present = Champion.objects.get().promotion
    with pytest.raises(Refused, match="champion already"):
        back(world, present)
    row = finish(world, back(world, first), outcome="incorrect_numeric")
    assert row.state == "refused"
    assert "incorrect_numeric" in row.cause
    assert Champion.objects.get().promotion == present


@pytest.mark.parametrize("age", [None, OLD, timedelta(minutes=-1)])
def test_rollback_needs_a_fresh_proof_of_who_orders_it(
    twice: tuple[World, Promotion], age: timedelta | None
) -> None:
    world, first = twice
    with pytest.raises(Refused, match="A rollback needs your password again") as refused:
        back(world, first, reauthenticated_at=None if age is None else timezone.now() - age)
    assert refused.value.code == "reauthentication"
    assert not Verification.objects.filter(kind="rollback").exists()
    assert back(world, first, session_hash="a" * 64).state == "running"
    assert AuditEntry.objects.get(verb="rollback.started").session_hash == "a" * 64


def test_rollback_by_somebody_who_lost_the_role_meanwhile(twice: tuple[World, Promotion]) -> None:
    world, first = twice
    row = back(world, first)
    role_revoke(team=world.team, user=world.ben, role="reviewer", by=world.maintainer)
    assert finish(world, row).state == "refused"
    assert Promotion.objects.count() == 2


def test_one_verification_per_slot_at_a_time(twice: tuple[World, Promotion]) -> None:
    world, first = twice
    back(world, first)
    with pytest.raises(Refused, match="running already"):
        back(world, first)


def test_quarantined_kernel_comes_back_only_through_a_review(twice: tuple[World, Promotion]) -> None:
    world, first = twice
    champion = Champion.objects.get()
    champion_quarantine(slot=slot_of(world), reason="wrong at 1x1", person=world.ben)
    assert slot_of(world).state == "quarantined"
    row = finish(world, back(world, first))
    assert row.state == "done"
    assert slot_of(world).state == "champion"
    with pytest.raises(Refused, match="only through a new review"):
        back(world, champion.promotion)


def test_new_evaluator_checks_every_champion_and_sets_failing_ones_aside(
    twice: tuple[World, Promotion], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = twice
    assert champions_recheck() == 0
    monkeypatch.setattr("harness.EVALUATOR_VERSION", "next")
    assert champions_recheck() == 1
    assert champions_recheck() == 0
    row = finish(world, Verification.objects.get(kind="recheck"), outcome="incorrect_nan")
    assert row.state == "done"
    slot = slot_of(world)
    assert (slot.state, "incorrect nan" in slot.state_reason) == ("quarantined", True)


def test_new_evaluator_leaves_a_champion_that_passes(
    twice: tuple[World, Promotion], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = twice
    monkeypatch.setattr("harness.EVALUATOR_VERSION", "next")
    champions_recheck()
    finish(world, Verification.objects.get(kind="recheck"))
    assert slot_of(world).state == "champion"
    assert champions_recheck() == 0


def test_emptied_slot_compares_with_the_baseline_again(twice: tuple[World, Promotion]) -> None:
    world, _ = twice
    for proof in (None, timezone.now() - OLD):
        with pytest.raises(Refused, match="Emptying a slot needs your password again"):
            slot_empty(slot=slot_of(world), person=world.ben, reason="retired", reauthenticated_at=proof)
    assert slot_of(world).state == "champion"
    slot_empty(slot=slot_of(world), person=world.ben, reason="retired", reauthenticated_at=timezone.now())
    assert slot_of(world).state == "empty"
    request = world.new_campaign().request(medium("4"))
    assert (request.champion, request.gate_tier) == (None, "medium")
    world.decide(request, world.ben)
    assert world.verify(request).state == "promoted"
    assert Promotion.objects.first().previous is None


def test_demo_people_bring_nothing_back_and_empty_nothing_once_the_switch_is_off(
    twice: tuple[World, Promotion], settings: Any
) -> None:
    world, first = twice
    type(world.ben).objects.filter(pk=world.ben.pk).update(demo=True)
    world.ben.refresh_from_db()
    settings.DEMO = True
    row = back(world, first)
    settings.DEMO = False
    row = finish(world, row)
    assert row.state == "refused" and row.cause == "Demo people decide nothing while the demo switch is off."
    assert Promotion.objects.count() == 2
    with pytest.raises(Refused, match="Demo people decide nothing"):
        slot_empty(slot=slot_of(world), person=world.ben, reason="gone", reauthenticated_at=timezone.now())
    assert slot_of(world).state == "champion"
