"""A round's conversation with a language model: all of it, escaped, with what hides named, and as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from gate_world import World, make_world
from llm_world import HOSTILE, endpoints_file, hostile_turn, keep, llm_world, turn

from apps.campaigns.screens.transcript import MOST_TURNS, laid_out, transcript
from apps.campaigns.services import round_start
from apps.core.untrusted import shown, visible
from harness.domain.codec import to_document
from harness.domain.turn import Answer, ToolCall, Usage

SignIn = Callable[..., Client]
DANGEROUS = ("<script>alert", "<img src=x", "\u202e", "\u2066", "\x1b", "\x00", "\ud800")


@pytest.fixture
def asked(db: None, settings: Any, tmp_path: Path) -> World:
    """A campaign whose first round asked a model."""
    settings.ENDPOINTS_PATH = endpoints_file(tmp_path)
    world = llm_world(make_world())
    world.measure_baseline()
    round_start(campaign=world.campaign, fence=world.fence, number=1)
    return world


def page_of(world: World, sign_in: SignIn, part: str = "") -> str:
    """The round's page, or another address of the campaign."""
    address = f"/campaigns/{world.campaign.pk}/{part or 'rounds/1/'}"
    answer = sign_in(world.vic).get(address)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_a_turn_shows_what_was_sent_what_came_and_what_it_cost(asked: World, sign_in: SignIn) -> None:
    later = turn(2, messages=({"role": "assistant", "content": "First the log."},
                              {"role": "tool", "tool_call_id": "c1", "content": "Round 0 is the baseline."}),
                 retries=2, answer=Answer(text="", reasoning="Think.", finish="length", usage=Usage(900, 4096)))
    keep(asked, turn(), later)
    text = unescape(page_of(asked, sign_in))
    for words in ("Make it faster.", "query_log", "direction: tiling", "Round 0 is the baseline.",
                  "1\u202f200 tokens in", "400 cached", "30 of them reasoning", "0.0123\u202fUSD", "4.2\u202fs",
                  "2 retries", "kernel-3", "good-2026", "cut off at the longest answer", "Reasoning",
                  "2\u202f100, 4\u202f176", "0.0246"):
        assert words in text, words
    assert text.count("First the log.") == 1, "an answer is not said again as a message of the next turn"


def test_everything_a_model_writes_is_text_and_hides_nothing(asked: World, sign_in: SignIn) -> None:
    keep(asked, turn(), hostile_turn())
    for part in ("rounds/1/", "", "?part=agent"):
        text = page_of(asked, sign_in, part)
        for sign in DANGEROUS:
            assert sign not in text, (part, sign)
        assert "&lt;script&gt;alert(1)" in text and "⟨U+202E⟩" in text and "{{ 7|add:7 }}" in text, part


def test_the_files_hold_every_turn_as_it_is_stored(asked: World, sign_in: SignIn) -> None:
    rows = keep(asked, turn(), hostile_turn())
    client = sign_in(asked.vic)
    found = json.loads(client.get(f"/campaigns/{asked.campaign.pk}/rounds/1/turns.json").content)
    assert found == [row.document for row in rows] and found[1]["answer"]["reasoning"] == HOSTILE
    answer = client.get(f"/campaigns/{asked.campaign.pk}/turns.jsonl")
    assert [json.loads(line) for line in answer.getvalue().splitlines()] == found
    assert "attachment" in answer["Content-Disposition"]
    for address in ("rounds/1/turns.json", "turns.jsonl"):
        assert sign_in(asked.stranger).get(f"/campaigns/{asked.campaign.pk}/{address}").status_code == 404


def test_samples_and_askings_stand_apart_and_a_question_put_otherwise_stays() -> None:
    documents = [to_document(one) for one in (
        turn(1), turn(1, sample=1, cost=None), turn(1, attempt=2), turn(1, attempt=2, request_digest="sha256:other"))]
    talk = transcript(documents)
    assert [(one.attempt, one.sample, len(one.turns)) for one in talk.askings] == [(1, 0, 1), (1, 1, 1), (2, 0, 2)]
    assert [one.name for one in talk.askings[2].turns] == ["2.0.1", "2.0.1-1"]
    assert talk.turns == 4 and talk.unpriced == 1 and talk.money == (("USD", pytest.approx(0.0369)),)


def test_a_very_long_round_shows_its_last_turns_and_all_sums() -> None:
    talk = transcript([to_document(turn(number)) for number in range(1, MOST_TURNS + 6)])
    assert talk.left_out == 5 and talk.turns == MOST_TURNS + 5
    assert [one.document["number"] for one in talk.askings[0].turns][:2] == [6, 7]


def test_arguments_are_laid_out_only_when_they_are_json() -> None:
    assert laid_out('{"source": "a = 1\\nb = 2", "gain": 0.3}') == ("source:\na = 1\nb = 2\ngain: 0.3", True)
    assert laid_out('{"source": ') == ('{"source": ', False)
    assert laid_out("[" * 50_000)[1] is False
    talk = transcript([to_document(turn(1, answer=Answer(calls=(ToolCall("x", "give_up", "{}"),))))])
    assert talk.askings[0].turns[0].calls[0].result is None


def test_what_hides_has_a_name_and_what_looks_like_a_key_goes() -> None:
    assert visible("a\tb\nc µ — 漢 é") == "a\tb\nc µ — 漢 é"
    assert visible("\x00\x7f\u200b\u2028\ue000") == "␀␡⟨U+200B⟩⟨U+2028⟩⟨U+E000⟩"
    for text in ("Authorization: Bearer abcdefghijklmnop", "key sk-proj-abcdefghijklmnop!", "bearer AbCdEfGhIjKlMnOp="):
        assert "[redacted]" in shown(text) and "bcdefghijklmn" not in shown(text).lower()
