"""Answers while they come in: a reader who misses frames loses no character, and what is over or stale is put away."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from apps.stream.live_answers import EVERY_S, MOST_PIECES, TAIL_CHARACTERS, LiveAnswers, storable
from apps.stream.models import Progress
from apps.stream.services import recording
from tests.apps.stream.conftest import Opener, Scene

Frames = list[dict[str, Any]]


def answering(frames: Frames) -> tuple[LiveAnswers, list[float]]:
    """Answers that write into ``frames``, and their clock."""
    now = [0.0]
    live = LiveAnswers("campaign:1", put=lambda **row: frames.append(row), clock=lambda: now[0])
    live.begin(round=1, attempt=1, sample=0, number=1)
    return live, now


class Page:
    """What the page does with frames: it appends what lies beyond the characters it has."""

    def __init__(self) -> None:
        self.text, self.have, self.gaps = "", 0, 0

    def show(self, data: dict[str, Any]) -> None:
        """One frame."""
        tail = "".join(piece["text"] for piece in data["pieces"])
        if data["from"] > self.have:
            self.gaps += 1
        self.text += tail[max(0, self.have - data["from"]):]
        self.have = data["from"] + len(tail)


kinds = st.sampled_from(["text", "reasoning", "call"])
pieces = st.lists(st.tuples(kinds, st.text(st.characters(), min_size=1, max_size=60), st.floats(0, 0.4), st.booleans()),
                  max_size=25)


@given(pieces)
def test_whoever_misses_frames_has_every_character(said: list[tuple[str, str, float, bool]]) -> None:
    frames: Frames = []
    live, now = answering(frames)
    page, missed = Page(), 0
    for kind, text, later, seen in said:
        now[0] += later
        before = len(frames)
        live.told(kind, text)
        if len(frames) > before:
            missed = 0 if seen or missed > 10 else missed + 1
            if not missed:
                page.show(frames[-1]["data"])
    now[0] += 2 * EVERY_S
    live.flush()
    page.show(frames[-1]["data"])
    assert (page.text, page.gaps) == ("".join(storable(text) for _, text, _, _ in said), 0)
    assert page.text.encode("utf-8") is not None and "\x00" not in page.text


def test_a_burst_is_one_frame_and_a_long_answer_a_short_one() -> None:
    frames: Frames = []
    live, now = answering(frames)
    for _ in range(2000):
        now[0] += 0.001
        live.told("text", "word ")
    assert len(frames) <= 2 / EVERY_S + 2
    last = frames[-1]["data"]
    assert sum(len(piece["text"]) for piece in last["pieces"]) <= TAIL_CHARACTERS
    assert last["from"] + sum(len(piece["text"]) for piece in last["pieces"]) <= 10_000
    live.end()
    over = frames[-1]["data"]
    assert over == {"round": 1, "attempt": 1, "sample": 0, "number": 1, "id": last["id"], "over": True}
    live.begin(round=1, attempt=1, sample=0, number=1)
    assert frames[-1]["data"]["id"] != last["id"], "the same turn asked again is another answer"
    live.end()
    live.told("text", "too late")
    assert frames[-1]["data"]["over"]


def test_samples_have_rows_of_their_own() -> None:
    frames: Frames = []
    live, _ = answering(frames)
    live.begin(round=1, attempt=1, sample=2, number=1)
    live.told("text", "other", sample=2)
    live.told("text", "nobody began this", sample=5)
    assert {row["kind"] for row in frames} == {"agent.delta", "agent.delta.2"}


@pytest.mark.asyncio
async def test_half_a_character_cuts_nobody_off(scene: Scene, follow: Opener) -> None:
    def propose() -> None:
        with recording(scene.campaign.stream) as log:
            log.append(scene.campaign.stream, "round.proposed", {"round": 1, "change_summary": "half \ud800"})

    await sync_to_async(propose)()
    reader = await follow(scene.member)
    (frame,) = await reader.durable(1)
    assert frame["data"]["change_summary"] == "half ?"


@pytest.mark.asyncio
async def test_readers_get_answers_and_none_that_a_killed_engine_left(
    scene: Scene, follow: Opener
) -> None:
    live = LiveAnswers(scene.campaign.stream)
    await sync_to_async(live.begin)(round=1, attempt=1, sample=0, number=1)
    await sync_to_async(live.begin)(round=1, attempt=1, sample=1, number=1)
    old = timezone.now() - timedelta(minutes=5)
    await sync_to_async(Progress.objects.filter(kind="agent.delta").update)(at=old)
    reader = await follow(scene.member)
    frame = await reader.until("agent.delta")
    assert frame["data"]["sample"] == 1
    assert not [one for one in reader.ephemeral if one["kind"].startswith("agent.")]


def test_an_answer_that_changes_kind_with_every_character_makes_no_long_frame() -> None:
    frames: Frames = []
    live, now = answering(frames)
    for number in range(4000):
        now[0] += 0.01
        live.told("text" if number % 2 else "reasoning", "x")
    last = frames[-1]["data"]
    assert len(last["pieces"]) == MOST_PIECES and last["from"] > 3000
    assert len(json.dumps(last)) < 4000
