"""Waiting for a verdict: it ends when there is something to say, when its time is up, and when the token ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from hypothesis import given
from hypothesis import strategies as st

from apps.bridge.mcp import server
from apps.bridge.mcp.limits import Buckets, Places
from apps.campaigns.models import Campaign
from apps.campaigns.services import campaign_pause, engine_tell
from apps.teams.services import token_revoke
from harness.domain.summary import VerdictSummary
from harness.domain.vocabulary import Comparison, Outcome, Stage
from harness.engine.results import Evaluated, result_to_document
from tests.apps.outside.conftest import Post, Scene, ideas, kernel, tool


def hand_in(scene: Scene) -> None:
    """Round 1 is being measured after this."""
    scene.call("query_log", direction=None)
    scene.call("state_hypotheses", hypotheses=ideas())
    assert not scene.call("submit_candidate", **kernel()).is_error


def measured(scene: Scene) -> None:
    """The evaluator's verdict on round 1, which was not timed."""
    digest = scene.campaign.rounds.get(number=1).kernel_id
    verdict = VerdictSummary(kernel=digest, outcome=Outcome.RUNTIME_ERROR, stage=Stage.SMOKE,
                             comparison=Comparison.NONE)
    engine_tell(campaign=Campaign.objects.get(pk=scene.campaign.pk), document=result_to_document(Evaluated(1, verdict)))


async def waiting(post: Post, scene: Scene, seconds: float) -> dict[str, Any]:
    """The answer's result."""
    answer = await post(tool("wait_for_verdict", campaign=scene.campaign.pk, seconds=seconds))
    return dict(answer.json()["result"])


async def looks(monkeypatch: pytest.MonkeyPatch, at_least: int) -> asyncio.Event:
    """Set when the server has looked that often."""
    seen, loop, found = [0], asyncio.get_running_loop(), asyncio.Event()
    real = server.tools.moved

    def counted(*arguments: Any) -> Any:
        seen[0] += 1
        if seen[0] >= at_least:
            loop.call_soon_threadsafe(found.set)
        return real(*arguments)

    monkeypatch.setattr(server.tools, "moved", counted)
    monkeypatch.setattr(server, "LOOK_EVERY_S", 0.02)
    return found


@pytest.mark.django_db(transaction=True)
async def test_it_answers_when_the_verdict_comes(post: Post, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    await sync_to_async(hand_in)(scene)
    looked = await looks(monkeypatch, 2)
    asked = asyncio.create_task(waiting(post, scene, 25))
    await looked.wait()
    assert not asked.done()
    await sync_to_async(measured)(scene)
    standing = (await asked)["structuredContent"]
    assert standing["your_turn"] and standing["round"] == 2
    last = standing["last_round"]
    assert (last["outcome"], last["timing"], last["comparison"]) == ("runtime_error", "not timed", None)


@pytest.mark.django_db(transaction=True)
async def test_it_answers_at_its_time_and_at_once_where_a_person_is_awaited(
    post: Post, scene: Scene
) -> None:
    await sync_to_async(hand_in)(scene)
    standing = (await waiting(post, scene, 0.1))["structuredContent"]
    assert standing["waits_for"] == "evaluator" and not standing["your_turn"]
    await sync_to_async(campaign_pause)(campaign=scene.campaign, person=scene.engineer, reason="Lunch.")
    standing = (await waiting(post, scene, 25))["structuredContent"]
    assert (standing["waits_for"], standing["state"], standing["cause"]) == ("person", "paused", "Lunch.")


@pytest.mark.django_db(transaction=True)
async def test_a_token_that_is_revoked_meanwhile_ends_it(
    post: Post, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sync_to_async(hand_in)(scene)
    looked = await looks(monkeypatch, 1)
    asked = asyncio.create_task(waiting(post, scene, 25))
    await looked.wait()
    token = await sync_to_async(scene.token)(scene.secret)
    await sync_to_async(token_revoke)(token=token, by=scene.maintainer)
    found = await asked
    assert found["isError"] and found["structuredContent"]["code"] == "signed_out"


@given(st.lists(st.floats(0, 30), max_size=40), st.integers(1, 5))
def test_no_key_gets_more_than_its_burst_and_its_rate(pauses: list[float], burst: int) -> None:
    now = [0.0]
    buckets = Buckets(per_minute=60, burst=burst, clock=lambda: now[0])
    granted = 0
    for pause in pauses:
        now[0] += pause
        wait = buckets.take("a")
        assert wait in (0, 1)
        granted += wait == 0
    assert granted <= burst + now[0]
    assert buckets.take("b") == 0, "another key has its own"


def test_a_key_that_waits_as_long_as_it_was_told_may_go_on() -> None:
    now = [0.0]
    buckets = Buckets(per_minute=6, burst=1, clock=lambda: now[0])
    assert buckets.take("a") == 0
    now[0] += buckets.take("a")
    assert buckets.take("a") == 0


def test_places_are_given_back_and_one_key_does_not_take_all() -> None:
    places = Places(each=1, together=2)
    with places.place("a") as first, places.place("a") as second, places.place("b") as third, places.place("c") as last:
        assert (first, second, third, last) == (True, False, True, False)
    with places.place("a") as again, places.place("c") as other:
        assert again and other
