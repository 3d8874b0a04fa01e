"""A world with campaigns, verdicts, requests and a champion, and clients signed in as its people."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gate"))

from gate_world import World, heavy, light, make_world, medium

from apps.campaigns.services import engine_renew
from apps.reviews.models import ReviewRequest
from apps.reviews.services import review_open, thread_open


@pytest.fixture(scope="module")
def shared_world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """The world of ``world``, made once for a module: every test's changes are taken back to it."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield made_world()
        transaction.set_rollback(True)


@pytest.fixture
def world(shared_world: World, db: None) -> World:
    """A running campaign with five rounds of all kinds, an open heavy request with a thread and one approval."""
    world = copy.deepcopy(shared_world)
    engine_renew(campaign=world.campaign, fence=world.fence)  # as if it had begun just now
    world.campaign.refresh_from_db()
    return world


def made_world() -> World:
    """Make it, through the services."""
    world = make_world()
    world.measure_baseline()
    world.round(medium("3"), ratios={"incumbent": 1.31, "baseline": 1.31})
    world.round(medium("4"), ratios={"incumbent": 1.001, "baseline": 1.30})
    world.round(medium("5"), outcome="incorrect_numeric")
    world.round(heavy("7"), ratios={"incumbent": 1.12, "baseline": 1.46})
    world.round(light(16), ratios={"incumbent": 0.9, "baseline": 1.3})
    verdict = world.campaign.incumbent_verdict
    assert verdict is not None
    request = review_open(campaign=world.campaign, kernel=verdict.kernel, verdict=verdict, person=world.ada)
    thread_open(request=request, person=world.ben, text="Why?", kernel=request.kernel, line=20)
    world.decide(request, world.cem)
    return world


@pytest.fixture
def request_row(world: World) -> ReviewRequest:
    """The open request."""
    return ReviewRequest.objects.get()


@pytest.fixture
def sign_in() -> Callable[..., Client]:
    """A client of a person, freshly proved or not."""

    def client_of(person: object | None, *, fresh: bool = True) -> Client:
        client = Client()
        if person is not None:
            client.force_login(person)
            if fresh:
                from django.utils import timezone

                from apps.teams.sessions import PROVED_AT

                session = client.session
                session[PROVED_AT] = timezone.now().timestamp()
                session.save()
        return client

    return client_of
