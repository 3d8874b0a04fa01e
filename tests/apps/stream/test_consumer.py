"""The socket: who gets in, what arrives, and what ends it."""

from __future__ import annotations

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.utils import timezone

from apps.stream import consumers
from apps.stream.services import progress_put
from apps.stream.tailer import tailer
from apps.teams.models import RoleGrant
from tests.apps.stream.conftest import Opener, Scene

pytestmark = pytest.mark.django_db(transaction=True)


async def test_anonymous_is_told_after_accept(follow: Opener) -> None:
    reader = await follow(None)
    frame = await reader.frame()
    assert frame["kind"] == "error" and "Sign in" in frame["data"]["text"]
    assert await reader.closed() == 4401


async def test_a_stranger_learns_nothing_not_even_that_the_campaign_exists(follow: Opener, scene: Scene) -> None:
    assert await (await follow(scene.stranger)).closed() == 4404
    assert await (await follow(scene.stranger, path="/ws/campaigns/999999/")).closed() == 4404


async def test_another_teams_stream_by_slug_is_absent_too(follow: Opener, scene: Scene) -> None:
    assert await (await follow(scene.stranger, path="/ws/teams/core/")).closed() == 4404
    assert (await (await follow(scene.member, path="/ws/teams/core/")).frame())["kind"] == "ready"


@pytest.mark.parametrize("origin", [None, "http://evil.example", "http://testserver:3000", "null"])
async def test_only_pages_of_this_very_site_may_open_it(follow: Opener, scene: Scene, origin: str | None) -> None:
    with pytest.raises(ConnectionRefusedError):
        await follow(scene.member, origin=origin)


async def test_replays_from_the_beginning_in_order_with_a_sentence(follow: Opener, scene: Scene) -> None:
    await sync_to_async(scene.write)(3)
    reader = await follow(scene.member)
    ready = await reader.frame()
    assert ready["data"] == {"head": 3, "after": 0}
    frames = await reader.durable(3)
    assert [frame["seq"] for frame in frames] == [1, 2, 3]
    assert frames[1]["text"] == "Round 1 started." and frames[1]["stream"] == scene.campaign.stream


async def test_resumes_after_the_last_number_seen(follow: Opener, scene: Scene) -> None:
    await sync_to_async(scene.write)(5)
    frames = await (await follow(scene.member, after=3)).durable(2)
    assert [frame["seq"] for frame in frames] == [4, 5]


async def test_a_commit_of_another_connection_wakes_the_reader(
    follow: Opener, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "RECHECK_EVERY_S", 600.0)  # no safety net: only the tailer can wake it
    monkeypatch.setattr(consumers, "BEAT_EVERY_S", 600.0)
    reader = await follow(scene.member)
    await reader.until("ready")
    await sync_to_async(scene.write)()
    assert (await reader.durable(1))[0]["seq"] == 1


async def test_nothing_of_another_campaign_leaks(follow: Opener, scene: Scene) -> None:
    reader = await follow(scene.member)
    await sync_to_async(scene.write)(2, campaign=scene.other_campaign)
    await sync_to_async(scene.write)(1)
    frames = await reader.durable(1)
    assert frames[0]["stream"] == scene.campaign.stream and frames[0]["seq"] == 1


async def test_lost_wake_ups_only_delay(follow: Opener, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "RECHECK_EVERY_S", 0.2)
    reader = await follow(scene.member)
    await reader.until("ready")
    here = tailer()
    monkeypatch.setattr(here, "_wake_changed", lambda: asyncio.sleep(0))  # every wake-up is lost from here on
    await sync_to_async(scene.write)(4)
    assert [frame["seq"] for frame in await reader.durable(4)] == [1, 2, 3, 4]


async def test_many_writers_many_reconnects_every_event_once_in_order(follow: Opener, scene: Scene) -> None:
    total, seen = 120, []
    writers = [asyncio.create_task(sync_to_async(scene.write, thread_sensitive=False)(total // 4)) for _ in range(4)]
    while len(seen) < total:
        reader = await follow(scene.member, after=seen[-1] if seen else 0)
        seen += [frame["seq"] for frame in await reader.durable(min(25, total - len(seen)))]
        await reader.socket.disconnect()
    await asyncio.gather(*writers)
    assert seen == list(range(1, total + 1))


async def test_a_role_taken_away_ends_the_stream(
    follow: Opener, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "RECHECK_EVERY_S", 0.1)
    reader = await follow(scene.member)
    await reader.until("ready")
    await RoleGrant.objects.filter(membership__user=scene.member).aupdate(revoked_at=timezone.now())
    assert await reader.closed() == 4403


async def test_signing_out_ends_the_stream(follow: Opener, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "RECHECK_EVERY_S", 0.1)
    reader = await follow(scene.member)
    await reader.until("ready")
    await Session.objects.all().adelete()
    assert await reader.closed() == 4401


async def test_a_changed_password_ends_the_stream(
    follow: Opener, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "RECHECK_EVERY_S", 0.1)
    reader = await follow(scene.member)
    await reader.until("ready")
    scene.member.set_password("another long password")
    await scene.member.asave()
    assert await reader.closed() == 4401


async def test_without_acknowledgement_the_window_closes_and_opens_again(
    follow: Opener, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "WINDOW_EVENTS", 5)
    await sync_to_async(scene.write)(12)
    reader = await follow(scene.member)
    frames = await reader.durable(5, acknowledge=False)
    assert (await reader.until("lag"))["data"] == {"acked": 0, "sent": 5}
    await reader.socket.send_json_to({"kind": "ack", "seq": frames[2]["seq"]})
    assert [frame["seq"] for frame in await reader.durable(3, acknowledge=False)] == [6, 7, 8]
    await reader.socket.send_json_to({"kind": "ack", "seq": 8})
    assert [frame["seq"] for frame in await reader.durable(4)] == [9, 10, 11, 12]


async def test_a_silent_reader_is_let_go(follow: Opener, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "SILENT_AFTER_S", 0.2)
    monkeypatch.setattr(consumers, "RECHECK_EVERY_S", 0.1)
    assert await (await follow(scene.member)).closed() == 4408


async def test_beats_tell_the_head(follow: Opener, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "BEAT_EVERY_S", 0.1)
    await sync_to_async(scene.write)(2)
    reader = await follow(scene.member)
    assert (await reader.until("beat"))["data"] == {"head": 2}


async def test_the_newest_progress_arrives_and_older_is_skipped(follow: Opener, scene: Scene) -> None:
    reader = await follow(scene.member)
    await reader.until("ready")

    def burst() -> None:
        for done in range(50):
            progress_put(stream=scene.campaign.stream, kind="progress", data={"stage": "benchmark", "done": done})

    await sync_to_async(burst)()
    shown = []
    while not shown or shown[-1] < 49:
        shown.append((await reader.until("progress"))["data"]["done"])
    assert shown == sorted(shown) and len(shown) < 50


@pytest.mark.parametrize(("sent", "code"), [
    ("{not json", "malformed_frame"), ("[1, 2]", "malformed_frame"), ("{}", "malformed_frame"),
    ("[" * 3000, "malformed_frame"), ('{"kind": "approve", "request": 7}', "unknown_frame"),
    ('{"kind": "ack", "seq": 99}', "wrong_ack"), ('{"kind": "ack", "seq": -1}', "wrong_ack"),
    ('{"kind": "ack", "seq": true}', "wrong_ack"), ("x" * 5000, "frame_too_large"),
])
async def test_a_frame_that_makes_no_sense_is_answered_and_changes_nothing(
    follow: Opener, scene: Scene, sent: str, code: str
) -> None:
    reader = await follow(scene.member)
    await reader.until("ready")
    await reader.socket.send_to(text_data=sent)
    assert (await reader.until("error"))["data"]["code"] == code
    await sync_to_async(scene.write)()
    assert (await reader.durable(1))[0]["seq"] == 1


async def test_a_binary_frame_is_answered(follow: Opener, scene: Scene) -> None:
    reader = await follow(scene.member)
    await reader.until("ready")
    await reader.socket.send_to(bytes_data=b"\x00")
    assert (await reader.until("error"))["data"]["code"] == "binary_frame"


async def test_a_broken_read_closes_with_1011_and_leaves_no_listener(
    follow: Opener, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> list[object]:
        raise RuntimeError("no such table")

    monkeypatch.setattr(consumers, "durable_frames", broken)
    reader = await follow(scene.member)
    assert await reader.closed() == 1011
    await reader.socket.disconnect()
    assert tailer()._listeners == {}
