"""Somebody who owns the database switches its guards off, writes, and puts them back without a trace. Nothing can
refuse that; what they wrote must be noticed, count for nothing and stop promotions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import Client, override_settings
from django.utils import timezone
from gate_attack import promotion_of, verified
from gate_world import World, heavy, medium

from apps.core.errors import Refused
from apps.kernels.models import Champion, Contribution, Kernel, Promotion, Slot
from apps.reviews import seals, triggers
from apps.reviews.gate import counted_approvals, standing_vetoes
from apps.reviews.models import Decision, ReviewRequest
from apps.reviews.policies import contributors
from apps.reviews.selectors import gate_requirements, promotions_blocked
from apps.reviews.services import gate_sweep, rollback_start, slot_empty
from apps.teams.selectors import reviewer_grant
from apps.teams.services import token_create


@contextmanager
def guards_off() -> Iterator[None]:
    """As by SQLite's ``enable_trigger`` switch or a dropped and re-created trigger."""
    triggers.lift()
    yield
    triggers.install()
    assert triggers.missing() == []


def written(request: ReviewRequest, person: Any, **changes: Any) -> Decision:
    """A decision as somebody would write it who knows every column and not the key."""
    now = timezone.now()
    decision = Decision(
        request=request, user=person, grant=reviewer_grant(person, request.team), kind="approve", gate_tier="heavy",
        kernel_digest=request.kernel_id, request_version=request.version, reauthenticated_at=now, at=now,
        session_hash="0" * 64, **changes,
    )
    decision.seal = seals.seal(decision, "a guess")
    decision.save()
    return decision


def test_approvals_written_by_hand_count_for_nothing(world: World) -> None:
    """The database itself would take them: everything the columns say is in order."""
    request = world.request(heavy())
    written(request, world.ben)
    written(request, world.cem)
    line = next(line for line in gate_requirements(request) if line.code == "approvals")
    assert (line.state, "0 of 2 approvals" in line.sentence) == ("not_met", True)
    ReviewRequest.objects.filter(pk=request.pk).update(state="approved")
    gate_sweep()
    request.refresh_from_db()
    assert (request.state, request.cause_code) == ("stale", "approval_lost")
    assert not Promotion.objects.exists()


def test_an_approval_bound_to_other_bytes_or_people_breaks_its_seal(world: World) -> None:
    request = world.request(heavy())
    world.decide(request, world.ben)
    assert len(counted_approvals(request)) == 1
    for change in ({"user": world.cem, "grant": reviewer_grant(world.cem, world.team)}, {"kernel_digest": "sha256:0"},
                   {"ticked": ["1x128"]}, {"demo": True}, {"gate_tier": "light"}):
        decision = request.decisions.get()
        assert seals.is_sealed(decision)
        for name, value in change.items():
            setattr(decision, name, value)
        assert not seals.is_sealed(decision), change


def test_a_new_key_takes_the_old_approvals_along_only_when_it_names_the_old_one(world: World, settings: Any) -> None:
    request = world.request(heavy())
    world.decide(request, world.ben)
    old = settings.SECRET_KEY
    with override_settings(SECRET_KEY="another key"):
        assert counted_approvals(request) == []
    with override_settings(SECRET_KEY="another key", SECRET_KEY_FALLBACKS=[old]):
        assert len(counted_approvals(request)) == 1


@pytest.fixture
def forged(world: World) -> tuple[World, Slot]:
    """A heavy kernel made champion with its guards off and forged approvals."""
    asked = verified(world, heavy())
    with guards_off():
        written(asked, world.ben)
        written(asked, world.cem)
        promotion = promotion_of(asked)
        promotion.save()
        Champion.objects.create(slot=asked.slot, kernel=asked.kernel, promotion=promotion, since=promotion.at)
        Slot.objects.filter(pk=asked.slot_id).update(state="champion")
        ReviewRequest.objects.filter(pk=asked.pk).update(state="promoted")
    return world, Slot.objects.get(pk=asked.slot_id)


def test_a_champion_written_by_hand_stops_promotions_and_is_not_handed_out(forged: tuple[World, Slot]) -> None:
    world, slot = forged
    assert "carried by no valid approval: 0 of at least 2" in " ".join(promotions_blocked())
    _, secret = token_create(team=world.team, user=world.ada, name="t", by=world.maintainer)
    answer = Client(headers={"Authorization": f"Bearer {secret}"}).get("/api/v1/champions/rms_norm")
    assert (answer.status_code, "carried by no valid approval" in answer.json()["text"]) == (409, True)
    other = world.new_campaign().request(medium("7"))
    world.decide(other, world.ben)
    world.decide(other, world.cem)
    gate_sweep()
    other.refresh_from_db()
    assert other.state == "approved"  # waits, with the sentence on its page
    line = next(line for line in gate_requirements(other) if line.code == "triggers")
    assert line.state == "not_met"
    with pytest.raises(Refused, match="cannot be restored"):
        rollback_start(slot=slot, promotion=Promotion.objects.get(), person=world.ben, reason="keep it",
                       reauthenticated_at=timezone.now())
    slot_empty(slot=slot, person=world.ben, reason="nobody approved this", reauthenticated_at=timezone.now())
    assert promotions_blocked() == [] or "carried" not in " ".join(promotions_blocked())


def test_honest_champions_stay_carried_when_people_and_roles_change_later(world: World) -> None:
    assert world.promote(heavy(), world.ben, world.cem).state == "promoted"
    world.new_campaign(starter=world.dia)
    grant = reviewer_grant(world.ben, world.team)
    assert grant is not None
    type(grant).objects.filter(pk=grant.pk).update(revoked_at=timezone.now())
    Contribution.objects.create(team=world.team, kernel=Kernel.objects.get(promotions__isnull=False), user=world.cem,
                                kind="edited")
    assert "carried" not in " ".join(promotions_blocked())


def test_a_tampered_normal_form_hides_neither_veto_nor_contributor(world: World) -> None:
    request = world.request(heavy())
    world.decide(request, world.ben, "veto")
    with guards_off():
        Kernel.objects.filter(pk=request.kernel_id).update(normal_digest="sha256:" + "0" * 64)
    kernel = Kernel.objects.get(pk=request.kernel_id)
    assert [veto.by for veto in standing_vetoes(world.team.pk, kernel)] == [world.ben]
    again = ReviewRequest.objects.get(pk=request.pk)
    assert world.ada.pk in contributors(again)


def test_a_request_marked_to_go_by_itself_is_asked_about(world: World) -> None:
    request = world.request(heavy())
    with guards_off():
        ReviewRequest.objects.filter(pk=request.pk).update(auto=True, state="approved")
    gate_sweep()
    request = ReviewRequest.objects.get(pk=request.pk)
    assert request.state == "stale"
    assert "marked to go by itself" in request.cause
