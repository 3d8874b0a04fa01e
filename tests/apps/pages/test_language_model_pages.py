"""Pages of a language model: choosing one, what it spends, steering it, its endpoints, and claims against data."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from gate_world import World, make_world, medium
from llm_world import HOSTILE, endpoints_file, keep, llm_world, turn

from apps.bridge import api
from apps.campaigns.jobs.workers import worker_beat
from apps.campaigns.models import Campaign, Influence
from apps.campaigns.services import engine_tell, engine_tell_verdict, round_start
from apps.core.screens.endpoints import EXAMPLE
from apps.stream.sentences import sentence

SignIn = Callable[..., Client]
FORM = {"operator": "rms_norm", "backend": "numba", "hardware": "cpu-test-model-1t", "workload": "llm",
        "grant": "heavy", "weights.latency": "1", "weights.throughput": "0", "weights.stability": "0",
        "weights.cold_start": "0", "budget.rounds": "3", "agent.kind": "openai", "agent.endpoint": "local",
        "agent.model": "good", "agent.best_of": "2", "budget.money": "1.5", "budget.turns": "20",
        "budget.tokens": "40000", "budget.at_limit": "ask", "name": "by a model"}


@pytest.fixture
def plain_world(db: None) -> World:
    """A team and its campaign, no endpoint configured."""
    return make_world()


@pytest.fixture
def configured(plain_world: World, settings: Any, tmp_path: Path) -> World:
    """The same with two endpoints."""
    settings.ENDPOINTS_PATH = endpoints_file(tmp_path)
    return plain_world


@pytest.fixture
def thinking(configured: World) -> World:
    """A campaign of a language model that thinks about round 1."""
    world = llm_world(configured)
    world.measure_baseline()
    round_start(campaign=world.campaign, fence=world.fence, number=1)
    return world


def read(client: Client, address: str, **posted: str) -> str:
    """The page as text, entities resolved; posted where something is."""
    answer = client.post(address, posted, follow=True) if posted else client.get(address)
    assert answer.status_code in (200, 422), answer.status_code
    return unescape(answer.content.decode())


def test_without_an_endpoint_the_form_says_so_and_starts_nothing(plain_world: World, sign_in: SignIn) -> None:
    client = sign_in(plain_world.ada)
    text = read(client, "/campaigns/new/")
    assert "No endpoint of a language model is configured" in text and 'name="agent.model"' not in text
    assert "cannot be chosen" in read(client, "/campaigns/new/", **FORM)
    assert not Campaign.objects.filter(name="by a model").exists()


def test_the_form_offers_what_the_server_has_with_price_and_date(configured: World, sign_in: SignIn) -> None:
    client = sign_in(configured.ada)
    text = read(client, "/campaigns/new/preview/", **FORM)
    price = "1.25\u202fUSD in, 0.125 cached, 10 out, per million tokens, as of 2026-11-01."
    assert f"It asks good at local. {price}" in text
    assert "up to 2 candidates in parallel" in text and "20 turns of the model" in text
    assert "A_KEY_OF_THE_TESTS" not in text
    read(client, "/campaigns/new/", **FORM)
    goal = Campaign.objects.get(name="by a model").goal
    assert goal["agent"] == {"kind": "openai", "endpoint": "local", "model": "good", "effort": None, "strategy": None,
                             "best_of": 2}
    assert (goal["budget"]["money"], goal["budget"]["turns"], goal["budget"]["at_limit"]) == (1.5, 20, "ask")


@pytest.mark.parametrize(("changes", "field", "words"), [
    ({"agent.endpoint": "elsewhere"}, "f-agent-endpoint-error", "It has: local, free"),
    ({"agent.model": "gpt"}, "f-agent-model-error", "It offers: good, big"),
    ({"agent.effort": "high"}, "f-agent-effort-error", "takes no effort"),
    ({"agent.model": "big", "agent.effort": "most"}, "f-agent-effort-error", "It has: low, high"),
    ({"agent.endpoint": "free", "agent.model": "small"}, "f-budget-money-error", "no price"),
    ({"agent.best_of": "9"}, "f-agent-best-of-error", "1 to 8"),
    ({"budget.turns": "0"}, "f-budget-turns-error", "at least 1"),
])
def test_what_the_server_lacks_is_refused_at_its_field(
    configured: World, sign_in: SignIn, changes: dict[str, str], field: str, words: str
) -> None:
    text = read(sign_in(configured.ada), "/campaigns/new/", **FORM | changes)
    assert f'id="{field}"' in text and words in text
    assert not Campaign.objects.filter(name="by a model").exists()


def test_another_endpoint_brings_its_own_models(configured: World, sign_in: SignIn) -> None:
    text = read(sign_in(configured.ada), "/campaigns/new/", **FORM | {"agent.endpoint": "free", "refresh": "1"})
    assert 'list="llm-models"' in text and 'value="small"' in text and "No price is set for it" in text


def test_other_agents_carry_no_model(configured: World, sign_in: SignIn) -> None:
    read(sign_in(configured.ada), "/campaigns/new/", **FORM | {"agent.kind": "playbook", "budget.money": ""})
    assert Campaign.objects.get(name="by a model").goal["agent"]["model"] is None


def test_the_strip_says_what_is_spent_and_what_is_at_its_limit(thinking: World, sign_in: SignIn) -> None:
    keep(thinking, turn(1), turn(2, cost=1.6))
    text = read(sign_in(thinking.vic), f"/campaigns/{thinking.campaign.pk}/")
    strip = text[text.index('class="meters budget"'):text.index("</dl>", text.index('class="meters budget"'))]
    for words in ("<b>1.61</b> of 1.50\u202fUSD", "<b>2</b> of 20", "<b>2\u202f560</b> of 5\u202f000"):
        assert words in strip, words
    assert strip.count("at the limit") == 1
    assert "query_log" in text and "0.0123\u202fUSD" in text


def test_a_spent_budget_is_raised_or_the_end(configured: World, sign_in: SignIn) -> None:
    world = configured.new_campaign(
        agent={"kind": "openai", "endpoint": "local", "model": "good", "effort": None, "strategy": None},
        budget={"rounds": 1, "evaluations": 30, "seconds": 3600.0, "tokens": None, "money": 0.5, "at_limit": "ask"})
    world.measure_baseline()
    world.round(medium("3"), ratios={"incumbent": 1.2, "baseline": 1.2})
    spent = api.engine_result("PlateauReached", cause="budget")
    engine_tell(campaign=world.campaign, fence=world.fence, document=spent)
    address = f"/campaigns/{world.campaign.pk}/"
    client = sign_in(world.ada)
    text = read(client, address)
    assert "Raise the budget and go on" in text and 'name="budget.money" value="0.5"' in text
    choose, raising = address + "do/choose/", {"choice": "raise_budget"}
    assert "No limit was changed" in read(client, choose, **raising, **{"budget.rounds": "1"})
    assert "is not a number" in read(client, choose, **raising, **{"budget.rounds": "many"})
    read(client, choose, **raising, **{"budget.rounds": "5", "budget.money": "0.5"})
    world.campaign.refresh_from_db()
    assert world.campaign.state == "running" and world.campaign.budget["rounds"] == 5


def test_a_person_steers_and_the_history_says_who(thinking: World, sign_in: SignIn) -> None:
    address = f"/campaigns/{thinking.campaign.pk}/"
    act = address + "do/steer/"
    client = sign_in(thinking.ben)
    read(client, act, kind="hint", text=HOSTILE.replace("\ud800", ""))
    read(client, act, kind="forbid", direction="tiling", text="We keep the tiles.")
    read(client, act, kind="model", choice="local\tbig\thigh")
    assert "offers no model" in read(client, act, kind="model", choice="local\tgpt\t")
    assert "empty" in read(client, act, kind="hint", text="  ")
    text = client.get(address + "?part=agent").content.decode()
    assert "<script>alert" not in text and "\u202e" not in text and "\x1b" not in text
    text = unescape(text)
    assert "Ben</b> gave a hint" in text and "<code>tiling</code> is forbidden by Ben" in text
    assert "<b>big</b> at local, effort high" in text and "Allow again" in text
    assert Influence.objects.filter(campaign=thinking.campaign, user=thinking.ben).exists()
    read(client, act, kind="allow", direction="tiling")
    assert "is forbidden by" not in read(client, address)
    for person in (thinking.vic, thinking.stranger):
        before = len(Campaign.objects.get(pk=thinking.campaign.pk).steering)
        assert sign_in(person).post(act, {"kind": "hint", "text": "mine"}).status_code in (303, 404)
        assert len(Campaign.objects.get(pk=thinking.campaign.pk).steering) == before
    assert "needs the role" in read(sign_in(thinking.vic), address + "?part=agent")


def test_an_answer_is_stopped_by_who_may(thinking: World, sign_in: SignIn) -> None:
    keep(thinking, turn(1, status="open", answer=None, cost=None))
    address = f"/campaigns/{thinking.campaign.pk}/"
    assert "Stop this answer" not in read(sign_in(thinking.vic), address)
    client = sign_in(thinking.ada)
    assert "Stop this answer" in read(client, address)
    assert "Nothing is counted" in read(client, address + "do/stop-answer/", stop="1")
    thinking.campaign.refresh_from_db()
    assert (thinking.campaign.state, thinking.campaign.cause_code) == ("paused", "answer_stopped")


def test_a_claim_of_three_where_the_data_say_less_is_flagged(thinking: World, sign_in: SignIn) -> None:
    source = medium("3")
    hypotheses = [{"id": f"h{n}", "direction": direction, "function": "_rms_norm", "text": "Try it.", "evidence": "e",
                   "expected_gain": 0.3} for n, direction in enumerate(("tiling", "fusion", "layout"))]
    engine_tell(campaign=thinking.campaign, fence=thinking.fence, document=api.engine_result(
        "Proposed", round=1, queried_log=True, normal_digest=api.normal_digest(source), proposal={
            "kind": "candidate", "queried_log": True, "hypotheses": hypotheses, "version": 1, "candidate": {
                "hypothesis": "h0", "source": source.decode(), "change_summary": "Three times faster",
                "claim": {"gain": 2.0, "text": "3x"}}}))
    row = thinking.campaign.rounds.get(number=1)
    verdict = thinking.answer(thinking.job(row.kernel), ratios={"incumbent": 0.9, "baseline": 0.9})
    engine_tell_verdict(campaign=thinking.campaign, fence=thinking.fence, round_number=1, verdict=verdict)
    client = sign_in(thinking.vic)
    for part in ("?part=log", "rounds/1/"):
        text = read(client, f"/campaigns/{thinking.campaign.pk}/{part}")
        assert "Claimed 3.000×, measured 0.9" in text and "over the incumbent." in text, part
    assert 'class="contradicted"' in read(client, f"/campaigns/{thinking.campaign.pk}/?part=log")


def test_the_system_page_shows_endpoints_and_no_key(
    thinking: World, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY_OF_THE_TESTS", "sk-very-secret-indeed")
    client = sign_in(thinking.vic)
    assert "the engine has not said" in read(client, "/system/")
    worker_beat(name="engine", kind="engine", environment={"keys": {"local": False}})
    text = read(client, "/system/?part=endpoints")
    assert "not set in the engine" in text and "not asked yet" in text and "none needed" in text
    worker_beat(name="engine", kind="engine", environment={"keys": {"local": True}})
    keep(thinking, turn(1), turn(2, status="failed", blame="provider", error="503 for 300 s.", answer=None, cost=None))
    text = read(client, "/system/?part=endpoints")
    for words in ("set in the engine", "A_KEY_OF_THE_TESTS", "503 for 300 s.", "fails", "as of 2026-11-01"):
        assert words in text, words
    assert "very-secret" not in text
    assert "503 for 300 s." not in read(sign_in(thinking.stranger), "/system/?part=endpoints"), "another team's"


def test_a_wrong_file_is_a_sentence_on_the_system_page(plain_world: World, sign_in: SignIn, settings: Any,
                                                       tmp_path: Path) -> None:
    settings.ENDPOINTS_PATH = tmp_path / "endpoints.toml"
    settings.ENDPOINTS_PATH.write_text('[endpoint.x]\nurl = "nowhere"\nmodels = ["a"]\n', "utf-8")
    client = sign_in(plain_world.ada)
    assert "cannot be used" in read(client, "/system/") and "url" in read(client, "/system/?part=endpoints")
    assert "Until then this agent cannot be chosen" in read(client, "/campaigns/new/")
    settings.ENDPOINTS_PATH.unlink()
    assert "No endpoint is configured" in read(client, "/system/?part=endpoints")


def test_the_example_of_the_system_page_is_a_file_that_works(tmp_path: Path) -> None:
    path = tmp_path / "endpoints.toml"
    path.write_text(EXAMPLE, "utf-8")
    here = api.endpoints_of(path)
    assert here.error == "" and [one.name for one in here.endpoints] == ["local", "hosted"]


def test_the_feed_reads_turns_and_steering_as_sentences() -> None:
    said = sentence("agent.turn", {"round": 2, "number": 3, "sample": 1, "status": "complete", "model": "good",
                                   "tokens": 1280, "cost": 0.0123, "currency": "USD", "latency_s": 4.2})
    assert said == "Round 2: good answered (turn 3, sample 2, 1\u202f280 tokens, 0.0123\u202fUSD, 4.2\u202fs)."
    said = sentence("campaign.steered", {"by": "Ben", "kind": "forbid", "direction": "tiling", "text": "We keep it."})
    assert said == "Ben forbade tiling: We keep it."


def test_an_outside_agent_has_its_card_and_reads_words(configured: World, sign_in: SignIn) -> None:
    choice = {"kind": "mcp", "endpoint": None, "model": None, "effort": None, "strategy": None}
    world = configured.new_campaign(agent=choice)
    address = f"/campaigns/{world.campaign.pk}/"
    text = read(sign_in(world.ada), address)
    assert "Outside agent" in text and "/mcp</code> with an API token" in text and "Give a hint" in text
    assert "Change the model" not in text and "Stop this answer" not in text
    world.campaign.outside_askings.create(  # type: ignore[attr-defined]
        answers_before=0, round=1, attempt=1, journal=[{"tool": "<b>query_log</b>", "error": True}])
    assert "<b>query_log" not in sign_in(world.ada).get(address).content.decode()


def test_agents_that_are_programs_have_no_such_card(plain_world: World, sign_in: SignIn) -> None:
    text = read(sign_in(plain_world.ada), f"/campaigns/{plain_world.campaign.pk}/")
    assert 'id="agent"' not in text and "answer.js" not in text


def test_what_follows_every_turn_reads_little(thinking: World, sign_in: SignIn) -> None:
    keep(thinking, *(turn(number) for number in range(1, 12)))
    client = sign_in(thinking.vic)
    for part, words in (("agent", "3 earlier turns"), ("budget", "<b>11</b> of 20")):
        with CaptureQueriesContext(connection) as asked:
            text = read(client, f"/campaigns/{thinking.campaign.pk}/?part={part}")
        assert words in text and f'id="{part}"' in text and "<html" not in text
        assert len(asked) <= 16, [query["sql"][:90] for query in asked.captured_queries]
        assert not [query for query in asked.captured_queries if 'FROM "kernels_verdict"' in query["sql"]]
