"""Who gets a place: thinking models take none, and where more campaigns wait than there are places, they take turns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.bridge.runner import engine_loop
from apps.bridge.runner.campaign_loop import CampaignRunner
from apps.bridge.runner.engine_loop import THREADS, EngineLoop
from apps.campaigns.models import Campaign
from apps.campaigns.services import campaign_pause
from apps.teams.models import User
from tests.crash.campaigns import begin_campaign

pytestmark = pytest.mark.django_db(transaction=True)
Look = Callable[[], None]


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineLoop]:
    """An engine whose campaigns only hold their places until it ends."""
    made = EngineLoop(errands=[])

    def run(runner: CampaignRunner) -> None:
        while not (made.stopping.is_set() or runner.aside.is_set()):
            made.stopping.wait(0.01)

    monkeypatch.setattr(CampaignRunner, "run", run)
    yield made
    made.stopping.set()
    for active in made._active.values():
        active.thread.join(60.0)


def started(loop: EngineLoop) -> set[int]:
    """Look once; the campaigns that have a thread then."""
    loop._start_threads()
    return set(loop._active)


def until(condition: Callable[[], bool]) -> None:
    """Wait, with a deadline."""
    deadline = time.monotonic() + 90.0
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def test_campaigns_whose_agents_think_starve_nobody(loop: EngineLoop, person: User) -> None:
    campaigns = [begin_campaign(person).pk for _ in range(THREADS + 2)]
    assert started(loop) == set(campaigns[:THREADS])
    for pk in campaigns[:2]:
        loop._active[pk].runner.asking = True
    assert started(loop) == set(campaigns)


def test_the_eldest_makes_room_and_comes_back_when_others_had_their_turn(
    loop: EngineLoop, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_loop, "TURN_S", 0.0)
    campaigns = [begin_campaign(person).pk for _ in range(THREADS + 1)]
    assert started(loop) == started(loop) == started(loop) == set(campaigns[:THREADS])
    first = loop._active[campaigns[0]]
    # One waits, so one is sent away, however often the engine looks.
    assert [loop._active[pk].runner.aside.is_set() for pk in campaigns[:THREADS]] == [True, False, False, False]
    until(lambda: not first.thread.is_alive())
    assert started(loop) == set(campaigns[1:])
    until(lambda: campaigns[0] in started(loop))


def test_nobody_is_sent_away_while_there_is_room(
    loop: EngineLoop, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_loop, "TURN_S", 0.0)
    campaigns = {begin_campaign(person).pk for _ in range(THREADS)}
    assert started(loop) == started(loop) == campaigns
    assert not any(active.runner.aside.is_set() for active in loop._active.values())


def test_leases_are_kept_while_agents_think(loop: EngineLoop, person: User) -> None:
    campaign = begin_campaign(person)
    started(loop)
    loop._active[campaign.pk].runner.asking = True
    soon = timezone.now() + timedelta(seconds=1)
    Campaign.objects.filter(pk=campaign.pk).update(lease_expires_at=soon)
    loop._renew()
    expires = Campaign.objects.get(pk=campaign.pk).lease_expires_at
    assert expires is not None and expires > soon + timedelta(seconds=10)


def test_an_agent_at_work_hears_of_a_pause_from_the_main_thread(loop: EngineLoop, person: User) -> None:
    campaign = begin_campaign(person)
    started(loop)
    runner = loop._active[campaign.pk].runner
    runner.asking, runner.version = True, Campaign.objects.get(pk=campaign.pk).version
    loop._notice()
    assert not runner.halted()
    campaign_pause(campaign=campaign, person=person)
    loop._notice()
    assert runner.halted()
