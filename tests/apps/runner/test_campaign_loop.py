"""One look, one deed: what the engine loop does with a campaign, and that doing it again changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.bridge import api
from apps.bridge.runner import ask, campaign_loop
from apps.bridge.runner.campaign_loop import CampaignRunner, Step
from apps.bridge.runner.closing import ClosingErrand
from apps.bridge.runner.worker import EvaluationWorker
from apps.campaigns import services
from apps.campaigns.models import Campaign, EngineResult, Job, Round
from apps.core.errors import LeaseLost
from apps.reviews.models import ReviewRequest
from apps.teams.models import User
from harness.agents.errors import AgentError
from harness.agents.protocol import AgentContext
from harness.domain.proposal import Proposal
from tests.crash.campaigns import begin_campaign

pytestmark = pytest.mark.django_db(transaction=True)
Drive = Callable[[Campaign], CampaignRunner]


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget's clock would add a step wherever the machine is slow."""
    monkeypatch.setattr(campaign_loop, "CLOCK_STEP_S", float("inf"))


def _until_settled(runner: CampaignRunner, worker: EvaluationWorker, most: int = 60) -> None:
    for _ in range(most):
        step = runner.step()
        if step is Step.SETTLED:
            return
        if step is Step.WAITS:
            assert worker.work_once(), "the runner waits for a job that is not there"
    raise AssertionError("the campaign did not come to rest")


def _kinds(campaign: Campaign) -> list[str]:
    return list(EngineResult.objects.filter(campaign=campaign).order_by("seq").values_list("kind", flat=True))


def test_looking_again_enqueues_no_second_job(campaign: Campaign, drive: Drive) -> None:
    runner = drive(campaign)
    assert [runner.step() for _ in range(3)] == [Step.WAITS] * 3
    assert Job.objects.filter(campaign=campaign).count() == 1


def test_a_campaign_runs_to_its_end_and_asks_for_a_review_once(
    campaign: Campaign, drive: Drive, worker: EvaluationWorker
) -> None:
    _until_settled(drive(campaign), worker)
    campaign.refresh_from_db()
    assert campaign.state == "finished"
    assert _kinds(campaign)[:3] == ["BaselineMeasured", "Proposed", "Evaluated"]
    faster = campaign.rounds.filter(comparison="faster").exists()
    assert ReviewRequest.objects.filter(campaign=campaign).count() <= int(faster)
    assert services.engine_lease(campaign=campaign) is None


def test_a_runner_whose_lease_was_taken_over_writes_nothing(
    campaign: Campaign, drive: Drive, worker: EvaluationWorker
) -> None:
    first, second = drive(campaign), drive(campaign)
    assert first.step() is Step.WAITS
    worker.work_once()
    with pytest.raises(LeaseLost):
        first.step()
    assert _kinds(campaign) == []
    assert second.step() is Step.MOVED
    assert _kinds(campaign) == ["BaselineMeasured"]


def test_killed_between_asking_and_telling_the_agent_is_asked_again_in_the_same_round(
    campaign: Campaign, drive: Drive, worker: EvaluationWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = drive(campaign)
    runner.step()
    worker.work_once()
    runner.step()
    real = services.engine_tell
    monkeypatch.setattr(services, "engine_tell", lambda **_: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        runner.step()
    monkeypatch.setattr(services, "engine_tell", real)
    assert Round.objects.get(campaign=campaign, number=1).state == "thinking"
    again = drive(campaign)
    assert again.step() is Step.MOVED
    assert Round.objects.filter(campaign=campaign).count() == 2
    assert _kinds(campaign) == ["BaselineMeasured", "Proposed"]


@pytest.mark.parametrize(("error", "state", "words"), [
    (AgentError("no answer from the endpoint", blame="provider"), "paused", "no answer from the endpoint"),
    (RuntimeError("a bug"), "paused", "RuntimeError: a bug"),
    (AgentError("not a proposal", blame="model"), "running", ""),
])
def test_an_agent_that_fails_pauses_or_bounces(
    campaign: Campaign, drive: Drive, worker: EvaluationWorker, monkeypatch: pytest.MonkeyPatch, error: Exception,
    state: str, words: str
) -> None:
    class Broken:
        label = "broken"

        def propose(self, context: object) -> None:
            raise error

    monkeypatch.setattr(ask, "make_agent", lambda choice, planner=None: Broken())
    runner = drive(campaign)
    runner.step()
    worker.work_once()
    runner.step()
    runner.step()
    campaign.refresh_from_db()
    assert campaign.state == state and words in campaign.cause
    if state == "running":
        assert Round.objects.get(campaign=campaign, number=1).bounces[0]["text"] == "not a proposal"


def test_without_any_worker_for_a_minute_the_campaign_pauses_and_keeps_its_place(
    campaign: Campaign, drive: Drive
) -> None:
    runner = drive(campaign)
    assert runner.step() is Step.WAITS
    Job.objects.filter(campaign=campaign).update(created_at=timezone.now() - timedelta(minutes=2))
    assert runner.step() is Step.MOVED
    campaign.refresh_from_db()
    assert campaign.state == "paused" and "No evaluation worker" in campaign.cause
    assert Job.objects.get(campaign=campaign).state == "queued"


def test_a_background_campaign_stands_still_while_a_persons_runs(
    campaign: Campaign, person: User, drive: Drive, settings: object
) -> None:
    settings.DEMO = True  # type: ignore[attr-defined]
    background = begin_campaign(person, name="Demo: in the background")
    assert drive(background).step() is Step.WAITS
    assert not Job.objects.filter(campaign=background).exists()
    services.campaign_stop(campaign=campaign, person=person)
    assert drive(background).step() is Step.WAITS
    job = Job.objects.get(campaign=background)
    assert job.priority < 20 and job.request["hardware"] == api.hardware_here()


def test_the_budgets_clock_is_told_between_rounds_and_ends_the_campaign(
    campaign: Campaign, drive: Drive, worker: EvaluationWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = drive(campaign)
    runner.step()
    worker.work_once()
    runner.step()
    monkeypatch.setattr(campaign_loop, "CLOCK_STEP_S", 1.0)
    runner._clock -= 2 * campaign.goal["budget"]["seconds"]
    _until_settled(runner, worker)
    campaign.refresh_from_db()
    assert campaign.state == "finished" and "seconds are spent" in campaign.cause
    assert campaign.rounds.count() == 1


def test_giving_up_waits_for_a_person_who_may_finish(
    campaign: Campaign, person: User, drive: Drive, worker: EvaluationWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Resigned:
        label = "resigned"

        def propose(self, context: AgentContext) -> Proposal:
            context.log.query()
            return Proposal("give_up", True, reason="nothing left to try")

    monkeypatch.setattr(ask, "make_agent", lambda choice, planner=None: Resigned())
    runner = drive(campaign)
    _until_settled(runner, worker)
    campaign.refresh_from_db()
    assert campaign.state == "plateau" and "nothing left to try" in campaign.cause
    assert runner.step() is Step.SETTLED
    services.plateau_choose(campaign=campaign, person=person, choice="finish")
    campaign.refresh_from_db()
    assert campaign.state == "finished"


def test_a_person_who_finishes_during_the_last_measurement_loses_no_review(
    person: User, drive: Drive, worker: EvaluationWorker
) -> None:
    campaign = begin_campaign(person, rounds=1)
    runner, closing = drive(campaign), ClosingErrand()
    last = Job.objects.filter(campaign=campaign, purpose="probe")
    for _ in range(20):
        if runner.step() is Step.WAITS and not last.exists():
            worker.work_once()
        if last.exists():
            break
    campaign.refresh_from_db()
    services.plateau_choose(campaign=campaign, person=person, choice="finish")
    assert Job.objects.get(campaign=campaign, purpose="probe").state == "cancelled"
    assert runner.step() is Step.SETTLED
    closing()
    assert worker.work_once()
    closing()
    closing()
    assert ReviewRequest.objects.get(campaign=campaign).kernel_id == campaign.incumbent_id
    assert _kinds(campaign).count("ReviewOpened") == 1
