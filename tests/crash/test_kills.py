"""Processes killed outright in every stage of a campaign: nothing lost, nothing twice, the same log in the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db.models import Count

from apps.campaigns.models import Campaign, EngineResult, Job, Round
from apps.campaigns.selectors import log_of
from apps.kernels.models import Verdict
from apps.reviews.models import ReviewRequest
from apps.stream.models import Event, Stream
from tests.crash.conftest import Site

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
BOTH = ("engine", "evalworker")
STAGES = ("admit", "static", "plan", "smoke", "correctness", "benchmark", "recheck")


def _ended(campaign: Campaign) -> Callable[[], bool]:
    return lambda: Campaign.objects.get(pk=campaign.pk).state == "finished"


def _story(campaign: Campaign) -> list[tuple]:
    """What a campaign came to, without anything that differs from run to run."""
    columns = ("number", "state", "outcome", "comparison", "conclusion", "change_summary", "kernel_id", "base_id")
    rounds = list(campaign.rounds.order_by("number").values_list(*columns))
    kinds = [kind for kind in EngineResult.objects.filter(campaign=campaign).order_by("seq").values_list(
        "kind", flat=True) if kind != "BudgetClock"]
    requests = list(ReviewRequest.objects.filter(campaign=campaign).values_list("kernel_id", "gate_tier", "state"))
    return [*rounds, *kinds, *requests]


def _nothing_lost_nothing_twice(campaign: Campaign) -> None:
    """Invariants that hold whatever was killed and when."""
    for name, head in Stream.objects.values_list("name", "last_seq"):
        seqs = list(Event.objects.filter(stream_id=name).order_by("seq").values_list("seq", flat=True))
        assert seqs == list(range(1, head + 1)), name
    results = list(EngineResult.objects.filter(campaign=campaign).order_by("seq").values_list("seq", flat=True))
    assert results == list(range(1, len(results) + 1))
    rounds = Round.objects.filter(campaign=campaign)
    assert not rounds.exclude(state="concluded").exists()
    assert all(row.verdict_id is not None for row in rounds)
    assert len(log_of(campaign)) == rounds.filter(number__gt=0).count()
    jobs = Job.objects.filter(campaign=campaign)
    assert set(jobs.values_list("state", flat=True)) <= {"succeeded", "errored"}
    once = jobs.filter(state="succeeded").values("round", "purpose").annotate(count=Count("pk"))
    assert [row for row in once if row["count"] > 1] == []
    assert Verdict.objects.filter(job__campaign=campaign).count() == jobs.filter(state="succeeded").count()
    verdicts = Event.objects.filter(stream_id=campaign.stream, kind="round.verdict")
    told = [event.data["round"] for event in verdicts]
    assert sorted(told) == list(range(rounds.count()))
    for kind in ("campaign.started", "campaign.plateau", "campaign.finished"):
        assert Event.objects.filter(stream_id=campaign.stream, kind=kind).count() == 1, kind


def test_an_undisturbed_campaign_and_one_whose_engine_dies_after_every_step_end_alike(
    site: Site, begin: Callable[..., Campaign]
) -> None:
    calm = begin()
    site.until(_ended(calm), *BOTH)
    _nothing_lost_nothing_twice(calm)
    killed = begin()
    seen = 0

    def step_on() -> bool:
        nonlocal seen
        count = EngineResult.objects.filter(campaign=killed).count()
        if count > seen:
            seen = count
            site.kill("engine")
        return _ended(killed)()

    site.until(step_on, *BOTH)
    assert site.killed >= 8
    _nothing_lost_nothing_twice(killed)
    assert _story(killed) == _story(calm)


def test_a_worker_killed_in_any_stage_is_replaced_and_the_round_measured_once(
    site: Site, begin: Callable[..., Campaign]
) -> None:
    for stage in STAGES:  # a campaign each, one site: most of the time would go into starting it
        site.held.write_text(stage, "utf-8")
        campaign = begin(rounds=1)
        running = Job.objects.filter(campaign=campaign, round__number=1, state="leased")
        site.until(lambda running=running, stage=stage: running.filter(progress__stage=stage).exists(), *BOTH)
        site.kill("evalworker")
        site.held.unlink()
        site.until(_ended(campaign), *BOTH)
        _nothing_lost_nothing_twice(campaign)
        job = Job.objects.get(campaign=campaign, round__number=1)
        assert job.attempt == 2, f"{stage}: {job.error}\n{site.logs()}"
        assert EngineResult.objects.filter(campaign=campaign, kind="InfrastructureFault").count() == 0, stage
    assert site.killed == len(STAGES)


def test_an_evaluator_killed_again_and_again_is_a_fault_of_nobody(
    site: Site, begin: Callable[..., Campaign]
) -> None:
    site.held.write_text("recheck", "utf-8")  # it would end before it is hit, where the machine is busy
    campaign = begin(rounds=1)
    fault = EngineResult.objects.filter(campaign=campaign, kind="InfrastructureFault")
    at_work = Job.objects.filter(campaign=campaign, round__number=1, state="leased")

    def kill_until_told() -> bool:
        if at_work.exists():
            site.kill_evaluator()
        return fault.exists()

    site.until(kill_until_told, *BOTH)
    site.held.unlink()
    errored = Job.objects.get(campaign=campaign, state="errored")
    assert errored.attempt == 3
    # the third kill may come before its evaluator was asked
    assert "killed by signal 9" in errored.error or "ended before it could be asked" in errored.error
    site.until(_ended(campaign), *BOTH)
    _nothing_lost_nothing_twice(campaign)
    assert Round.objects.get(campaign=campaign, number=1).outcome == "passed"


def test_both_killed_at_once_at_every_new_event(site: Site, begin: Callable[..., Campaign]) -> None:
    campaign = begin(rounds=2)
    seen = 0

    def step_on() -> bool:
        nonlocal seen
        head = Stream.objects.get(pk=campaign.stream).last_seq
        if head > seen:
            seen = head
            site.kill("engine")
            if head % 3 == 0:
                site.kill("evalworker")
        return _ended(campaign)()

    site.until(step_on, *BOTH)
    assert site.killed >= 6
    _nothing_lost_nothing_twice(campaign)


def test_a_pause_survives_the_engine_and_a_person_lets_it_go_on(
    site: Site, begin: Callable[..., Campaign], person: object
) -> None:
    from apps.campaigns.services import campaign_resume

    campaign = begin(rounds=2, pause_after_diagnosis=True)

    def paused() -> bool:
        return Campaign.objects.get(pk=campaign.pk).state == "paused"

    site.until(paused, *BOTH)
    site.kill("engine")
    site.keep(*BOTH)
    assert paused() and Campaign.objects.get(pk=campaign.pk).cause_code == "diagnosis"
    campaign_resume(campaign=Campaign.objects.get(pk=campaign.pk), person=person)
    site.until(_ended(campaign), *BOTH)
    assert Round.objects.filter(campaign=campaign, state="concluded").count() == 3


def test_a_campaign_stopped_by_a_person_takes_its_running_evaluation_along(
    site: Site, begin: Callable[..., Campaign], person: object
) -> None:
    from apps.campaigns.services import campaign_stop

    site.held.write_text("smoke", "utf-8")
    campaign = begin(rounds=2)
    running = Job.objects.filter(campaign=campaign, round__number=1, state="leased")
    site.until(running.exists, *BOTH)
    campaign_stop(campaign=Campaign.objects.get(pk=campaign.pk), person=person)
    assert not Job.objects.filter(campaign=campaign, state__in=["queued", "leased"]).exists()
    site.held.unlink()
    other = begin(rounds=1)  # the worker is free for the next one, and nothing of the old one is recorded
    site.until(_ended(other), *BOTH)
    assert not Verdict.objects.filter(job__campaign=campaign, job__round__number=1).exists()
    assert Round.objects.get(campaign=campaign, number=1).state == "cancelled"
