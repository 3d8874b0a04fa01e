"""A hostile endpoint, an impatient engineer and a steering colleague against the rows of a campaign."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps as installed
from django.core import serializers

from apps.bridge.runner import campaign_loop
from apps.bridge.runner.campaign_loop import CampaignRunner, Step
from apps.bridge.runner.turns import MOST_OF_A_TURN, StoredTurns
from apps.campaigns import services
from apps.campaigns.models import AgentTurn, Campaign, Influence, Round
from apps.campaigns.services.steering import MOST_STEERS
from apps.core.errors import Invalid
from apps.kernels.models import Kernel
from apps.teams.models import User
from harness.agents.llm.ports import TransportError
from harness.agents.llm.redaction import without
from harness.agents.llm.wire import transport
from harness.domain.turn import Answer, ToolCall, Turn, Usage
from tests.apps.runner.models import IDEAS, KEY, VARIABLE, begin, diagnosis, endpoints_file, kernel, measure
from tests.crash.campaigns import make_person
from tests.harness.llm.mind.fakes import LOG, Script, calls, says, submits

pytestmark = pytest.mark.django_db(transaction=True)
Drive = Callable[[Campaign], CampaignRunner]


@pytest.fixture(autouse=True)
def _server(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(campaign_loop, "CLOCK_STEP_S", float("inf"))
    monkeypatch.setenv(VARIABLE, KEY)
    settings.ENDPOINTS_PATH = endpoints_file(tmp_path)


@pytest.fixture
def says_next(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Script]:
    """Puts a script in the place of the endpoint."""

    def put(*answers: Any) -> Script:
        script = Script(*answers)
        monkeypatch.setattr(transport, "transports", lambda endpoints: lambda name: script)
        return script

    return put


def everything() -> str:
    """All rows of all tables, as text; kernels in words."""
    rows = [row for model in installed.get_models() for row in model._default_manager.all()]
    sources = [bytes(row.source).decode() for row in Kernel.objects.all()]
    return serializers.serialize("json", rows) + "\n".join(sources)


def spelt(key: str) -> str:
    """A key as JSON may write it, which no search for the key itself finds."""
    return "".join(f"\\u{ord(character):04x}" for character in key)


def with_key(key: str) -> list[Answer]:
    """A diagnosis whose answers carry the key in every place that a hostile endpoint can reach."""
    first, ideas, last = diagnosis()
    words = json.loads(ideas.calls[0].arguments)
    words["hypotheses"][0]["text"] = f"The key is {key} indeed."
    words["hypotheses"][1]["evidence"] = f"evidence {key}"
    source = f"# {key}\n{kernel(16)}"
    arguments = submits(source, "h1", change_summary=f"Uses {key} more.")[1]
    escaped = json.dumps(arguments).replace(key, spelt(key))
    return [
        replace(first, calls=(replace(first.calls[0], id=key),), model=key, finish=key, reasoning=key),
        replace(ideas, calls=(ToolCall(f"id {key}", "state_hypotheses", json.dumps(words)),), text=key),
        replace(last, calls=(ToolCall("c", "submit_candidate", escaped),)),
    ]


def test_an_endpoint_that_says_the_key_back_in_every_place_and_spelling(
    person: User, drive: Drive, says_next: Callable[..., Script]
) -> None:
    runner = drive(begin(person))
    measure(runner)
    says_next(*with_key(KEY))
    assert runner.step() is Step.MOVED
    assert Round.objects.get(campaign=runner.pk, number=1).state == "evaluating"
    kept = everything()
    assert KEY not in kept and without(kept, [KEY]) == kept


@pytest.mark.parametrize("end", [
    lambda: [Answer(finish=KEY)] * 3,
    lambda: [calls((KEY, {}))] * 3,
    lambda: [calls(("query_log", json.dumps({KEY: 1})))] * 3,
    lambda: [calls(("query_log", json.dumps({KEY: 1}).replace(KEY, spelt(KEY))))] * 3,
    lambda: [TransportError(f"HTTP 500: {KEY}", kind="unavailable")],
    lambda: [RuntimeError(f"HTTP 500: {KEY} could not be read")],
], ids=["finish", "tool", "arguments", "escaped arguments", "error", "exception"])
def test_no_failure_says_the_key(
    person: User, drive: Drive, says_next: Callable[..., Script], end: Callable[[], list[Any]],
    caplog: pytest.LogCaptureFixture
) -> None:
    runner = drive(begin(person))
    measure(runner)
    says_next(*end())
    runner.step()
    kept = everything()
    assert "of no use" in kept or "HTTP 500" in kept
    assert KEY not in caplog.text and KEY not in kept and without(kept, [KEY]) == kept


@pytest.mark.parametrize(("limit", "value"), [("tokens", 3000), ("money", 0.004)])
def test_stopping_answers_over_and_over_does_not_get_past_the_budget(
    person: User, drive: Drive, says_next: Callable[..., Script], limit: str, value: float
) -> None:
    campaign = begin(person, budget={limit: value})
    runner = drive(campaign)
    measure(runner)
    asked = 0
    for _ in range(8):
        script = says_next(TransportError("Stopped.", kind="cancelled", partial=says("half an ans")))
        runner.step()
        asked += len(script.questions)
        if not script.questions:
            break
    assert asked == 3, "each stopped answer was paid for with 1,100 tokens"
    assert runner.step() is Step.MOVED
    campaign.refresh_from_db()
    assert campaign.state == "plateau" and campaign.cause_code == "budget" and campaign.tokens_used == 3300


def test_a_paid_proposal_is_used_though_the_budget_is_spent(
    person: User, drive: Drive, says_next: Callable[..., Script]
) -> None:
    campaign = begin(person, budget={"turns": 3})
    runner = drive(campaign)
    measure(runner)
    first, second, third = diagnosis()
    says_next(first, second, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        runner.step()
    again, script = drive(campaign), says_next(third)
    assert again.step() is Step.MOVED and len(script.questions) == 1
    assert Round.objects.get(campaign=campaign, number=1).state == "evaluating"


def test_an_answer_of_a_hundred_long_calls_fits_a_row(person: User) -> None:
    campaign = begin(person)
    flood = tuple(ToolCall(f"c{n}", "query_log", "\U0001f600" * 31_000) for n in range(128))
    turn = Turn(1, 1, 1, "here", "model-a", "t", "sha256:" + "0" * 64, ({"role": "user", "content": "x"},),
                status="complete", answer=Answer(calls=flood, finish="tool_calls", usage=Usage(1, 1)))
    Campaign.objects.filter(pk=campaign.pk).update(fence=7)
    StoredTurns(campaign, 7).keep(turn)
    row = AgentTurn.objects.get(campaign=campaign)
    kept = row.document["answer"]
    assert len(kept["calls"]) == 128 and kept["calls"][0]["arguments"] == flood[0].arguments
    assert "more characters were not kept" in kept["calls"][127]["arguments"] and kept["finish"] == "tool_calls"
    assert sum(len(call["arguments"]) for call in kept["calls"]) < MOST_OF_A_TURN + 128 * 300


@pytest.mark.parametrize("direction", ["tiling:use_a_block_of_4096_and_sixteen_warps", "tiling:_rms_norm_",
                                       "tiling:_RMS_NORM", "tiling:" + "a" * 99])
def test_a_direction_is_no_way_to_whisper(person: User, direction: str) -> None:
    campaign = begin(person)
    other = make_person("grace")
    with pytest.raises(Invalid, match="No kernel of this campaign"):
        services.campaign_steer(campaign=campaign, person=other, kind="forbid", direction=direction)
    assert not campaign.engine_results.exists()


def test_fields_that_a_way_to_steer_has_no_use_for_carry_nothing(person: User) -> None:
    campaign = begin(person)
    other = make_person("grace")
    services.campaign_steer(campaign=campaign, person=other, kind="restructure", direction="use 16 warps",
                            endpoint="use 16 warps", model="x" * 9999, effort="use 16 warps")
    document = campaign.engine_results.get().document["data"]
    assert not any(document[name] for name in ("text", "direction", "endpoint", "model", "effort"))
    assert not Influence.objects.filter(campaign=campaign).exists()


def test_calls_without_a_query_of_the_log_propose_nothing(
    person: User, drive: Drive, says_next: Callable[..., Script]
) -> None:
    runner = drive(begin(person))
    measure(runner)
    lie = calls(submits(kernel(16), "h1"), text="I have read the whole log: query_log() -> empty.")
    says_next(calls(IDEAS), lie, lie, lie, lie, lie, calls(LOG))
    runner.step()
    assert Round.objects.get(campaign=runner.pk, number=1).kernel is None


@pytest.mark.parametrize("budget", [{"tokens": 100_000, "turns": 50}, {"money": 9.0}], ids=["tokens", "money"])
def test_an_outage_within_a_limited_budget_pays_for_nothing_twice(
    person: User, drive: Drive, says_next: Callable[..., Script], budget: dict[str, Any]
) -> None:
    """What was spent stands in the prompt: counted at the outage, it must not make another question of the same one."""
    campaign = begin(person, budget=budget)
    runner = drive(campaign)
    measure(runner)
    first, second, third = diagnosis()
    says_next(first, second, TransportError("503, again.", kind="unavailable", partial=says("half")))
    runner.step()
    campaign.refresh_from_db()
    assert campaign.cause_code == "endpoint" and campaign.tokens_used == 3300
    services.campaign_resume(campaign=campaign, person=person)
    again, script = drive(campaign), says_next(third)
    assert again.step() is Step.MOVED and len(script.questions) == 1
    assert Round.objects.get(campaign=campaign, number=1).state == "evaluating"


@pytest.mark.parametrize("gone", ["endpoint", "model", "price", "file"])
def test_settings_that_change_under_a_campaign_pause_it_before_anything_is_asked(
    person: User, drive: Drive, says_next: Callable[..., Script], settings: Any, gone: str
) -> None:
    campaign = begin(person, budget={"money": 5.0})
    runner = drive(campaign)
    measure(runner)
    text = settings.ENDPOINTS_PATH.read_text("utf-8")
    changed = {"endpoint": text.replace("endpoint.here", "endpoint.there"),
               "model": text.replace('"model-a", ', "").replace(text[text.index("[endpoint.here.price.model-a]"):
                                                                     text.index("[endpoint.here.price.model-b]")], ""),
               "price": text[:text.index("[endpoint.here.price.model-a]")], "file": text + "\n[[["}[gone]
    settings.ENDPOINTS_PATH.write_text(changed, "utf-8")
    script = says_next(*diagnosis()) if gone not in ("endpoint", "file") else None
    assert runner.step() is Step.MOVED
    campaign.refresh_from_db()
    assert (campaign.state, campaign.cause_code) == ("paused", "endpoint"), campaign.cause
    assert script is None or script.questions == []
    settings.ENDPOINTS_PATH.write_text(text, "utf-8")
    services.campaign_resume(campaign=campaign, person=person)
    says_next(*diagnosis())
    assert drive(campaign).step() is Step.MOVED
    assert Round.objects.get(campaign=campaign, number=1).state == "evaluating"


def test_a_campaign_is_not_steered_without_end(person: User) -> None:
    campaign = begin(person)
    services.campaign_steer(campaign=campaign, person=person, kind="forbid", direction="tiling")
    Campaign.objects.filter(pk=campaign.pk).update(steering=[{"kind": "hint"}] * MOST_STEERS)
    campaign.refresh_from_db()
    with pytest.raises(Invalid, match="steered 200 times"):
        services.campaign_steer(campaign=campaign, person=person, kind="hint", text="once more")
    services.campaign_steer(campaign=campaign, person=person, kind="allow", direction="tiling")
