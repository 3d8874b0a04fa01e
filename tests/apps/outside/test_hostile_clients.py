"""Clients that are hostile, two at once, or late: nothing of another's work is lost, and nothing is handed in that was
not asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.bridge.mcp import askings, bench
from apps.bridge.mcp.models import Asking
from apps.campaigns.models import EngineResult
from apps.campaigns.services import campaign_pause, campaign_resume, campaign_steer, campaign_stop
from apps.teams.services import token_revoke
from harness.agents.llm.tools.arguments import MOST_LOOKED_AT
from tests.apps.outside.conftest import Post, Scene, ideas, kernel, tool

pytestmark = pytest.mark.django_db


def proposals(scene: Scene) -> int:
    return EngineResult.objects.filter(campaign=scene.campaign, kind="Proposed").count()


def test_a_slow_reader_does_not_undo_what_another_client_stated(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second client's call begins before the first one states, and is written down after it."""
    scene.call("query_log", direction=None)
    real, meanwhile = askings.asking_note, [True]

    def late(**given: Any) -> Asking:
        if meanwhile and given["noted"].tool == "read_profile":
            meanwhile.clear()
            assert not scene.call("state_hypotheses", hypotheses=ideas()).is_error
        return real(**given)

    monkeypatch.setattr(askings, "asking_note", late)
    assert not scene.call("read_profile", shape=None).is_error
    assert len(Asking.objects.get(campaign=scene.campaign).stated) == 3
    assert not scene.call("submit_candidate", **kernel()).is_error and proposals(scene) == 1


def test_two_hand_ins_at_once_are_one(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.call("query_log", direction=None)
    scene.call("state_hypotheses", hypotheses=ideas())
    real, first = bench.hand_in, [True]

    def raced(*given: Any, **more: Any) -> Any:
        if first:
            first.clear()
            assert not scene.call("submit_candidate", **kernel(16)).is_error
        return real(*given, **more)

    monkeypatch.setattr(bench, "hand_in", raced)
    second = scene.call("submit_candidate", **kernel(64))
    assert second.is_error and second.data is not None and second.data["code"] == "moved_on"
    assert proposals(scene) == 1


@pytest.mark.parametrize("how", ["pause", "stop", "revoke", "steer"])
def test_what_happens_between_the_check_and_the_hand_in_counts(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    scene.call("query_log", direction=None)
    scene.call("state_hypotheses", hypotheses=ideas())
    real = bench.hand_in
    deeds: dict[str, Any] = {
        "pause": lambda: campaign_pause(campaign=scene.campaign, person=scene.engineer),
        "stop": lambda: campaign_stop(campaign=scene.campaign, person=scene.engineer),
        "revoke": lambda: token_revoke(token=scene.token(scene.secret), by=scene.maintainer),
        "steer": lambda: campaign_steer(campaign=scene.campaign, person=scene.engineer, kind="forbid",
                                        direction="vectorisation"),
    }

    def raced(*given: Any, **more: Any) -> Any:
        deeds[how]()
        return real(*given, **more)

    monkeypatch.setattr(bench, "hand_in", raced)
    reply = scene.call("submit_candidate", **kernel())
    assert reply.is_error, reply.text
    round_one = scene.campaign.rounds.filter(number=1).first()
    assert round_one is None or round_one.kernel is None


def test_a_paused_campaign_takes_nothing_and_the_asking_goes_on_afterwards(scene: Scene) -> None:
    scene.call("query_log", direction=None)
    scene.call("state_hypotheses", hypotheses=ideas())
    campaign_pause(campaign=scene.campaign, person=scene.engineer)
    for name, arguments in (("submit_candidate", kernel()), ("give_up", {"reason": "No idea is worth a round."}),
                            ("state_hypotheses", {"hypotheses": ideas()})):
        reply = scene.call(name, **arguments)
        assert reply.is_error and reply.data == {"code": "not_your_turn", "text": reply.text}
    assert proposals(scene) == 0
    scene.campaign.refresh_from_db()
    campaign_resume(campaign=scene.campaign, person=scene.engineer)
    assert not scene.call("submit_candidate", **kernel()).is_error


@pytest.mark.parametrize("extra", [{"tier": "light"}, {"queried_log": True}, {"grant": "heavy"}, {"approved": True},
                                   {"round": 1}, {"verdict": "passed"}, {"trace": {"tokens": -5}}, {"team": "other"}])
def test_there_is_no_place_for_a_tier_a_verdict_or_an_approval(scene: Scene, extra: dict[str, Any]) -> None:
    scene.call("query_log", direction=None)
    scene.call("state_hypotheses", hypotheses=ideas())
    reply = scene.call("submit_candidate", **kernel(), **extra)
    assert reply.is_error and "unknown keys" in reply.text and proposals(scene) == 0


@pytest.mark.django_db(transaction=True)
async def test_a_body_full_of_wrong_ideas_is_answered_shortly(scene: Scene, post: Post) -> None:
    flood: list[dict[str, Any]] = [{}] * 60_000
    answer = await post(tool("state_hypotheses", campaign=scene.campaign.pk, hypotheses=flood))
    said = json.loads(answer.content)
    assert answer.status_code == 200 and said["result"]["isError"] and len(answer.content) < 10_000
    assert MOST_LOOKED_AT < 100


@pytest.mark.parametrize("header", [
    {"origin": "http://evil.example"}, {"origin": "null"}, {"host": "evil.example"}, {"host": "testserver@evil"},
    {"host": ""}, {"content_type": "text/plain"}, {"content_type": "application/x-www-form-urlencoded"}])
async def test_pages_of_other_places_get_nothing(post: Post, header: dict[str, str]) -> None:
    answer = await post(tool("list_campaigns"), **header)
    assert answer.status_code in (400, 403, 415, 421) and b"campaign" not in answer.content.replace(b"campaigns", b"")
