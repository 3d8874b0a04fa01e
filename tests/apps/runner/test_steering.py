"""People steer a campaign: who may, what is written down, what reaches the model, who may not approve afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.audit.models import AuditEntry
from apps.bridge.runner import campaign_loop
from apps.bridge.runner.campaign_loop import CampaignRunner
from apps.campaigns import services
from apps.campaigns.models import Campaign, Influence
from apps.core.errors import AppError, ImpossibleTransition, Invalid, Refused
from apps.kernels.models import Contribution
from apps.stream.models import Event
from apps.teams.models import User
from harness.agents.llm.wire import transport
from harness.domain.codec import to_document
from harness.domain.proposal import Proposal
from tests.apps.runner.models import begin, diagnosis, endpoints_file, kernel, measure
from tests.crash.campaigns import begin_campaign, make_person
from tests.harness.engine.campaigns import IDEAS
from tests.harness.llm.mind.fakes import Script

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _server(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign_loop, "CLOCK_STEP_S", float("inf"))
    settings.ENDPOINTS_PATH = endpoints_file(tmp_path)


@pytest.fixture
def campaign(person: User) -> Campaign:
    """A running campaign of a language model."""
    return begin(person)


def test_a_hint_is_written_down_reaches_the_model_and_makes_its_author_a_contributor(
    campaign: Campaign, drive: Callable[[Campaign], CampaignRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_person("grace")
    services.campaign_steer(campaign=campaign, person=other, kind="hint", text="Look at the tail.\x00\u202e")
    event = Event.objects.get(stream_id=campaign.stream, kind="campaign.steered")
    assert event.data == {"by": "grace", "kind": "hint", "text": "Look at the tail."}
    entry = AuditEntry.objects.get(verb="campaign.steered")
    assert (entry.actor, entry.reason) == (other, "hint Look at the tail.")
    assert Influence.objects.get(campaign=campaign).user == other
    campaign.refresh_from_db()
    assert [note["text"] for note in campaign.steering] == ["Look at the tail."]
    runner = drive(campaign)
    measure(runner)
    script = Script(*diagnosis())
    monkeypatch.setattr(transport, "transports", lambda endpoints: lambda name: script)
    runner.step()
    assert any("Look at the tail." in str(message["content"]) for message in script.questions[0].messages)
    kernel = campaign.rounds.get(number=1).kernel
    assert {(row.user.name, row.kind) for row in Contribution.objects.filter(kernel=kernel)} >= {
        ("emma", "started"), ("grace", "commented")}


def test_a_forbidden_direction_stands_with_its_author_until_it_is_allowed(campaign: Campaign, person: User) -> None:
    services.campaign_steer(campaign=campaign, person=person, kind="forbid", direction="tiling:_rms_norm")
    campaign.refresh_from_db()
    assert campaign.forbidden == [{"direction": "tiling:_rms_norm", "person": "emma"}]
    services.campaign_steer(campaign=campaign, person=person, kind="allow", direction="tiling:_rms_norm")
    campaign.refresh_from_db()
    assert campaign.forbidden == [] and len(campaign.steering) == 2
    assert not Influence.objects.filter(campaign=campaign).exists()  # no words went to the agent


def test_another_model_of_this_server_works_on(campaign: Campaign, person: User, settings: Any) -> None:
    services.campaign_steer(campaign=campaign, person=person, kind="model", model="free")
    campaign.refresh_from_db()
    assert (campaign.agent["model"], campaign.agent["endpoint"]) == ("free", "here")
    assert campaign.goal["agent"]["model"] == "model-a"


@pytest.mark.parametrize(("asked", "key"), [
    ({"kind": "shout"}, "kind"), ({"kind": "hint", "text": "x" * 2001}, "text"),
    ({"kind": "model", "endpoint": "elsewhere"}, "agent.endpoint"), ({"kind": "model", "model": "m9"}, "agent.model"),
    ({"kind": "model", "effort": "high"}, "agent.effort"), ({"kind": "model", "model": "a\x00b"}, "agent.model"),
    ({"kind": "model", "model": "m" * 201}, "agent.model"),
])
def test_what_the_server_does_not_have_is_refused(
    campaign: Campaign, person: User, asked: dict[str, str], key: str
) -> None:
    with pytest.raises(Invalid) as refused:
        services.campaign_steer(campaign=campaign, person=person, **asked)
    assert refused.value.key == key
    assert not Event.objects.filter(kind="campaign.steered").exists()


def test_money_of_two_currencies_is_not_added_up(campaign: Campaign, person: User) -> None:
    Campaign.objects.filter(pk=campaign.pk).update(currency="EUR")
    campaign.refresh_from_db()
    with pytest.raises(Invalid, match="cannot be added up"):
        services.campaign_steer(campaign=campaign, person=person, kind="model", model="model-b")


def test_a_limit_of_money_needs_a_price(person: User) -> None:
    with pytest.raises(Invalid, match="no price") as refused:
        begin(person, choice={"model": "free"}, budget={"money": 1.0})
    assert refused.value.key == "budget.money"


def test_who_may_not_run_campaigns_may_not_steer_them(campaign: Campaign) -> None:
    viewer = make_person("vera", "viewer")
    deeds: list[Callable[[], object]] = [
        lambda: services.campaign_steer(campaign=campaign, person=viewer, kind="hint", text="mine"),
        lambda: services.answer_stop(campaign=campaign, person=viewer),
        lambda: services.plateau_choose(campaign=campaign, person=viewer, choice="raise_budget", budget={"turns": 9}),
    ]
    for deed in deeds:
        with pytest.raises(AppError) as refused:
            deed()
        assert isinstance(refused.value, Refused | Invalid)
    assert not campaign.engine_results.exists()


def test_programs_and_ended_campaigns_are_not_steered(campaign: Campaign, person: User) -> None:
    playbook = begin_campaign(person)
    with pytest.raises(ImpossibleTransition, match="reads no words"):
        services.campaign_steer(campaign=playbook, person=person, kind="hint", text="try harder")
    with pytest.raises(Invalid, match="No answer"):
        services.answer_stop(campaign=campaign, person=person)
    services.campaign_stop(campaign=campaign, person=person)
    with pytest.raises(ImpossibleTransition, match="asked no more"):
        services.campaign_steer(campaign=campaign, person=person, kind="hint", text="too late")


def outside(person: User) -> Campaign:
    """A running campaign of an agent outside of the server."""
    return begin_campaign(person, agent="mcp")


def document(**more: Any) -> dict[str, Any]:
    """A proposal with three hypotheses, as an outside agent hands it in."""
    return to_document(Proposal("hypotheses", True, IDEAS)) | more


def test_an_outside_agent_is_waited_for_and_its_proposal_is_told_once(
    person: User, drive: Callable[[Campaign], CampaignRunner]
) -> None:
    campaign, maker = outside(person), make_person("mike")
    runner = drive(campaign)
    measure(runner)
    assert runner.step() is campaign_loop.Step.SETTLED
    assert campaign.rounds.get(number=1).state == "thinking"
    source = {"hypothesis": "h1", "source": kernel(16), "change_summary": "A larger block."}
    ready = document(kind="candidate", candidate=source)
    told = {"campaign": campaign, "person": person, "queried_log": True, "round_number": 1, "attempt": 1}
    for forged in ({"tier": "light"}, {"approved": True}, {"candidate": source | {"verdict": {"outcome": "passed"}}}):
        with pytest.raises(Invalid):
            services.proposal_from_outside(proposal=ready | forged, **told)
    assert campaign.rounds.get(number=1).bounces == []
    services.proposal_from_outside(proposal=ready, makers=[maker], **told)
    with pytest.raises(AppError, match="does not wait for answer 1 of round 1"):
        services.proposal_from_outside(proposal=ready, **told)
    one = campaign.rounds.get(number=1)
    assert one.state == "evaluating" and one.kernel.text == kernel(16)
    assert {row.user.name for row in Contribution.objects.filter(kernel=one.kernel, kind="started")} == {"emma", "mike"}
    assert runner.step() is campaign_loop.Step.WAITS  # the same loop measures it


def test_what_an_outside_agent_sends_is_held_to_the_same_rules(
    person: User, drive: Callable[[Campaign], CampaignRunner]
) -> None:
    campaign = outside(person)
    measure(drive(campaign))
    told = {"campaign": campaign, "person": person, "queried_log": True, "round_number": 1}
    huge = {"hypothesis": "h1", "source": "x" * 10_000_000, "change_summary": "<script>alert(1)</script>\x00"}
    services.proposal_from_outside(proposal=document(kind="candidate", candidate=huge), attempt=1, **told)
    services.proposal_from_outside(proposal=document(), attempt=2, **{**told, "queried_log": False})
    services.proposal_from_outside(proposal=document(hypotheses=[]), attempt=3, **told)
    one = campaign.rounds.get(number=1)
    assert [bounce["code"] for bounce in one.bounces] == ["agent_failed", "log_not_queried", "hypotheses_invalid"]
    assert one.state == "concluded" and one.outcome == "policy_violation"
    with pytest.raises(Invalid, match="only one whose agent is 'mcp'"):
        services.proposal_from_outside(proposal=document(), campaign=begin(person), person=person, queried_log=True,
                                       round_number=1, attempt=1)
