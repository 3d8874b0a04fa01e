"""Two at the same moment: each of them saw a state in which its step was allowed."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections
from django.utils import timezone
from gate_world import World, heavy, make_world, medium

from apps.core.errors import AppError
from apps.kernels.models import Champion, Promotion
from apps.reviews.models import Decision, ReviewRequest
from apps.reviews.services import gate_sweep, promotion_finish, review_decide, review_open, rollback_start
from apps.teams.models import RoleGrant
from apps.teams.services import role_revoke


@pytest.fixture
def world(transactional_db: None) -> World:
    """A world whose rows other connections see."""
    return make_world()


def at_once(*steps: Callable[[], Any]) -> list[Any]:
    """Run each in its own thread and connection, let go together; what each gave or raised."""
    start, results = Barrier(len(steps)), [None] * len(steps)

    def go(place: int, step: Callable[[], Any]) -> None:
        try:
            connection.ensure_connection()
            start.wait(60)
            results[place] = step()
        except (AppError, DatabaseError) as error:
            results[place] = error
        finally:
            connections.close_all()

    threads = [Thread(target=go, args=(place, step)) for place, step in enumerate(steps)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def fresh(request: ReviewRequest) -> ReviewRequest:
    return ReviewRequest.objects.get(pk=request.pk)


def decision(request: ReviewRequest, person: Any, kind: str) -> Callable[[], Any]:
    shown = {"shown_digest": request.kernel_id, "shown_version": request.version}
    return lambda: review_decide(request=fresh(request), person=person, kind=kind, reauthenticated_at=timezone.now(),
                                 comment="because", **shown)


def verifying(world: World, source: bytes, *people: Any) -> ReviewRequest:
    """Approved, verified, and one step before the promotion."""
    request = world.request(source)
    for person in people:
        world.decide(request, person)
    gate_sweep()
    request.refresh_from_db()
    world.answer(request.verify_job)
    request.refresh_from_db()
    return request


def test_two_engines_promote_once(world: World) -> None:
    request = verifying(world, medium(), world.ben)
    results = at_once(*(lambda: promotion_finish(request=fresh(request)) for _ in range(3)))
    assert [type(one) for one in results if isinstance(one, Exception)] == []
    assert Promotion.objects.count() == Champion.objects.count() == 1
    assert fresh(request).state == "promoted"


def test_veto_against_promotion_ends_one_way(world: World) -> None:
    request = verifying(world, medium(), world.ben)
    vetoed, _ = at_once(decision(request, world.cem, "veto"), lambda: promotion_finish(request=fresh(request)))
    state = fresh(request).state
    assert state in ("vetoed", "promoted")
    assert Promotion.objects.exists() == (state == "promoted")
    assert isinstance(vetoed, Decision) == (state == "vetoed")
    if state == "promoted":
        assert isinstance(vetoed, AppError)


def test_role_taken_away_while_it_promotes(world: World) -> None:
    request = verifying(world, heavy(), world.ben, world.cem)
    at_once(
        lambda: role_revoke(team=world.team, user=world.cem, role="reviewer", by=world.maintainer),
        lambda: promotion_finish(request=fresh(request)),
    )
    promotion = Promotion.objects.first()
    taken = RoleGrant.objects.get(membership__user=world.cem, role="reviewer").revoked_at
    assert fresh(request).state == ("promoted" if promotion else "stale")
    if promotion is not None:
        assert taken is None or promotion.request_id == request.pk  # it was written before the role was gone
        assert promotion.required_approvals == 2


def test_approval_against_rejection_records_one_way(world: World) -> None:
    request = world.request(medium())
    results = at_once(decision(request, world.ben, "approve"), decision(request, world.cem, "reject"))
    ends = fresh(request).state
    assert ends in ("approved", "rejected")
    refused = [one for one in results if isinstance(one, AppError)]
    assert len(refused) + Decision.objects.count() == 2
    assert (ends == "rejected") == Decision.objects.filter(kind="reject").exists()


def test_two_requests_of_a_campaign_and_two_rollbacks_of_a_slot(world: World) -> None:
    verdicts = [world.verdict(medium(tag)) for tag in ("3", "5")]
    at_once(*(lambda v=v: review_open(campaign=world.campaign, kernel=v.kernel, verdict=v, person=world.ada)
              for v in verdicts))
    assert ReviewRequest.objects.filter(state__in=("open", "approved", "verifying")).count() == 1
    other = world.new_campaign()
    for tag in ("7", "8"):
        assert other.promote(medium(tag), world.ben, world.cem).state == "promoted", tag
        other = world.new_campaign()
    first = Promotion.objects.order_by("id").first()
    assert first is not None
    results = at_once(*(lambda p=p: rollback_start(slot=first.slot, promotion=first, person=p, reason="back",
                                                 reauthenticated_at=timezone.now())
                        for p in (world.ben, world.cem)))
    assert sum(isinstance(one, Exception) for one in results) == 1
