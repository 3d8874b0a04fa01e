"""The engine killed, stopped and paused in the middle of a model's answer: no complete turn is asked or paid twice."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.campaigns.models import AgentTurn, Campaign, EngineResult
from apps.campaigns.services import answer_stop, campaign_resume
from apps.stream.models import Event
from apps.teams.models import User
from harness.agents.llm.scripted.personas import PERSONAS, Persona
from harness.agents.llm.scripted.server import ScriptedServer
from tests.crash.conftest import Site
from tests.crash.test_kills import BOTH, _ended, _nothing_lost_nothing_twice, _story

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
ENDPOINT = """
[endpoint.scripted]
url = "{url}"
key_variable = "A_KEY_OF_THE_TESTS"
models = ["good"]
api = "chat"
[endpoint.scripted.price.good]
input = 1.0
output = 4.0
currency = "EUR"
date = "2026-11-29"
"""


class Model(ScriptedServer):
    """The scripted engineer behind a real socket. ``asked`` counts the questions. ``held`` says which of them get the
    beginning of an answer and no more: none, every one, or every other one."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.held: Callable[[int], bool] = lambda number: False
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def who(self, model: object) -> Persona:
        """Called once for each question."""
        self.asked += 1
        return replace(PERSONAS["good"], gap_s=60.0 if self.held(self.asked) else 0.0)

    def close(self) -> None:
        """End it."""
        self.ending.set()
        self.shutdown()
        self.server_close()


@pytest.fixture
def model(site: Site, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    """The only endpoint of the site."""
    made = Model()
    settings.ENDPOINTS_PATH = tmp_path / "endpoints.toml"
    settings.ENDPOINTS_PATH.write_text(ENDPOINT.format(url=made.url), "utf-8")
    site.set("A_KEY_OF_THE_TESTS", "key-of-the-tests-4f9a7c21")
    yield made
    made.close()


@pytest.fixture
def ask_model(begin: Callable[..., Campaign]) -> Callable[..., Campaign]:
    """Starts a campaign of the scripted engineer."""
    return lambda rounds: begin(rounds=rounds, agent="openai", choice={"endpoint": "scripted", "model": "good"})


def turns(campaign: Campaign, status: str) -> Any:
    """Its turns of this status."""
    return AgentTurn.objects.filter(campaign=campaign, status=status)


def paid_once(campaign: Campaign) -> None:
    """Every question has one complete answer, and all of them are counted."""
    complete = list(turns(campaign, "complete").values_list("request_digest", "tokens_in", "tokens_out"))
    assert len({digest for digest, *_ in complete}) == len(complete)
    row = Campaign.objects.get(pk=campaign.pk)
    assert row.turns_used == len(complete)
    assert row.tokens_used >= sum(tokens_in + tokens_out for _, tokens_in, tokens_out in complete) > 0


def test_killed_in_the_middle_of_answers_the_campaign_ends_as_if_nothing_had_been(
    site: Site, ask_model: Callable[..., Campaign], model: Model
) -> None:
    calm = ask_model(1)
    site.until(_ended(calm), *BOTH)
    _nothing_lost_nothing_twice(calm)
    paid_once(calm)
    calmly = model.asked
    assert calmly == turns(calm, "complete").count() >= 3
    killed = ask_model(1)
    model.held = lambda number: (number - calmly) % 2 == 1  # the first asking of each question; the second goes through
    at = calmly

    def step_on() -> bool:
        nonlocal at
        if model.asked > at and model.held(model.asked) and turns(killed, "open").exists():
            at = model.asked
            site.kill("engine")
        return _ended(killed)()

    site.until(step_on, *BOTH)
    assert site.killed == calmly
    _nothing_lost_nothing_twice(killed)
    paid_once(killed)
    assert turns(killed, "complete").count() == calmly
    assert model.asked == calmly + 2 * calmly  # each kill cost the one question that was under way
    assert _story(killed) == _story(calm)


def test_the_servers_end_and_a_person_stop_an_answer_and_the_campaign_goes_on_with_it_later(
    site: Site, ask_model: Callable[..., Campaign], model: Model, person: User
) -> None:
    model.held = lambda number: True
    campaign = ask_model(1)
    site.until(lambda: model.asked == 1, *BOTH)
    engine = site.children["engine"]
    engine.send_signal(signal.SIGTERM)
    assert engine.wait(60) == 0
    assert turns(campaign, "cancelled").count() == 1
    site.until(lambda: model.asked == 2, *BOTH)
    answer_stop(campaign=Campaign.objects.get(pk=campaign.pk), person=person)
    site.until(lambda: Event.objects.filter(stream_id=campaign.stream, kind="agent.turn").count() == 2, *BOTH)
    assert not turns(campaign, "open").exists()
    model.held = lambda number: False
    campaign_resume(campaign=Campaign.objects.get(pk=campaign.pk), person=person)
    site.until(_ended(campaign), *BOTH)
    assert EngineResult.objects.filter(campaign=campaign, kind="AgentFailed").count() == 0
