"""The evaluation worker: one job, one verdict, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db.models import F

from apps.bridge.runner.campaign_loop import CampaignRunner, Step
from apps.bridge.runner.evaluator import Abandoned, Evaluator, ProgressLine
from apps.bridge.runner.watch import Watch
from apps.bridge.runner.worker import EvaluationWorker
from apps.campaigns.jobs import services as queue
from apps.campaigns.jobs.handback import urgent_job_waits
from apps.campaigns.models import Campaign, Job
from apps.kernels.models import Verdict
from apps.stream.models import Progress
from tests.apps.runner.conftest import PROJECT, SCRIPTED

pytestmark = pytest.mark.django_db(transaction=True)
Drive = Callable[[Campaign], CampaignRunner]


@pytest.fixture
def job(campaign: Campaign, drive: Drive) -> Job:
    """The queued job of round 0."""
    assert drive(campaign).step() is Step.WAITS
    return Job.objects.get(campaign=campaign)


def _tampering(worker: EvaluationWorker, tamper: Callable[[], object]) -> EvaluationWorker:
    """Run ``tamper`` once, in the middle of the evaluation."""
    done: list[bool] = []
    real = worker.evaluator.evaluate

    def evaluate(request, *, on_progress, on_tick):
        def progress(line: ProgressLine) -> None:
            on_progress(line)
            if line.stage == "smoke" and not done:
                done.append(True)
                tamper()
        return real(request, on_progress=progress, on_tick=on_tick)

    worker.evaluator.evaluate = evaluate  # type: ignore[method-assign]
    return worker


def test_a_job_becomes_one_verdict_with_the_clocks_of_its_stages(worker: EvaluationWorker, job: Job) -> None:
    assert worker.work_once() and not worker.work_once()
    job.refresh_from_db()
    assert job.state == "succeeded" and job.verdict.outcome == "passed"
    assert [stage["stage"] for stage in job.stages][:3] == ["admit", "static", "plan"]
    assert all(stage["ended_at"] for stage in job.stages)
    shown = Progress.objects.get(stream=job.campaign.stream, kind="progress").data
    assert shown["stage"] == "recheck" and shown["round"] == 0 and "smoke" in shown["clocks"]


def shown_stage(job: Job) -> str:
    """The stage that a page opened now is told of."""
    stage: str = Progress.objects.get(stream=job.campaign.stream, kind="progress").data["stage"]
    return stage


def test_a_job_handed_back_shows_no_stage_of_the_attempt_that_ended(job: Job, worker: EvaluationWorker) -> None:
    _tampering(worker, worker.stopping.set).work_once()
    job.refresh_from_db()
    assert (job.state, job.progress, shown_stage(job)) == ("queued", {}, "")


def test_an_evaluator_that_breaks_three_times_errors_the_job_with_its_words(job: Job, worker: EvaluationWorker) -> None:
    worker.evaluator = Evaluator(project=PROJECT, command=[*SCRIPTED[:1], "-c", "raise SystemExit('no torch here')"])
    for attempt in (1, 2, 3):
        job.refresh_from_db()
        assert (job.state, job.attempt) == ("queued", attempt)
        worker.work_once()
        assert shown_stage(job) == ""
    job.refresh_from_db()
    assert job.state == "errored" and "no torch here" in job.error
    assert not Verdict.objects.exists()


def test_a_cancelled_job_records_nothing_and_frees_the_device(job: Job, worker: EvaluationWorker) -> None:
    worker = _tampering(worker, lambda: queue.job_cancel(job=job, reason="stopped"))
    worker.work_once()
    job.refresh_from_db()
    assert job.state == "cancelled" and not Verdict.objects.exists()


def test_who_lost_the_lease_records_nothing_even_with_a_verdict_in_hand(job: Job, worker: EvaluationWorker) -> None:
    worker = _tampering(worker, lambda: Job.objects.filter(pk=job.pk).update(fence=F("fence") + 1))
    worker.work_once()
    job.refresh_from_db()
    assert job.state == "leased" and not Verdict.objects.exists()


def test_a_worker_that_ends_hands_the_job_back_without_counting_an_attempt(job: Job, worker: EvaluationWorker) -> None:
    worker = _tampering(worker, worker.stopping.set)
    worker.work_once()
    job.refresh_from_db()
    assert (job.state, job.attempt, job.owner_pid) == ("queued", 1, None)
    assert worker.evaluator.pid is None


def test_a_background_job_makes_way_for_a_more_urgent_one_a_persons_does_not(job: Job) -> None:
    def watch(must_yield: bool) -> Watch:
        made = Watch(job=job, report=lambda: None, stopping=lambda: False, must_yield=lambda: must_yield)
        made._looked = float("-inf")
        return made

    watch(False).tick()
    with pytest.raises(Abandoned, match="goes first"):
        watch(True).tick()
    Job.objects.filter(pk=job.pk).update(priority=F("priority") + 1)
    job.priority = 1
    assert urgent_job_waits(job=job)


def test_between_a_persons_rounds_no_background_job_is_begun(job: Job, worker: EvaluationWorker) -> None:
    Job.objects.filter(pk=job.pk).update(priority=F("priority") - 1)
    assert not worker.work_once()  # a person's campaign runs; its next round comes any moment
    Campaign.objects.filter(pk=job.campaign_id).update(state="plateau")
    assert worker.work_once()
    job.refresh_from_db()
    assert job.state == "succeeded"


def test_a_drained_worker_takes_nothing(job: Job, worker: EvaluationWorker) -> None:
    worker.beat = lambda verdict: False
    worker.when_idle = worker.stopping.set
    worker.run()
    job.refresh_from_db()
    assert job.state == "queued"


def test_a_verdict_that_its_samples_do_not_give_is_not_recorded(job: Job, worker: EvaluationWorker) -> None:
    real = worker.evaluator.evaluate

    def forged(request, **more):
        response = real(request, **more)
        response.verdict["regressions"] = ["64x64"]
        response.verdict["timing"]["overall"] = {"baseline": {"ratio": 9.0, "low": 8.0, "high": 10.0}}
        return response

    worker.evaluator.evaluate = forged  # type: ignore[method-assign]
    worker.work_once()
    job.refresh_from_db()
    assert job.state == "queued" and job.attempt == 2 and not Verdict.objects.exists()
