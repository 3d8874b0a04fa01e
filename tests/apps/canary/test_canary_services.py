"""Readings, drifts, and what waits meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest
from canary_world import Canary
from django.db import IntegrityError
from django.utils import timezone
from gate_world import ENVIRONMENT, HARDWARE, World, medium

from apps.audit.models import AuditEntry
from apps.campaigns.canary.models import CanaryBase, CanaryDrift, CanaryReading
from apps.campaigns.canary.selectors import drift_gap, drift_windows, in_doubt
from apps.campaigns.canary.services import canary_rebase, canary_sweep
from apps.campaigns.jobs.services import job_fail, job_lease
from apps.campaigns.models import Campaign, Job
from apps.core.errors import Invalid, Refused
from apps.kernels.models import Champion, Promotion, Verdict
from apps.reviews.gate import requirements
from apps.reviews.selectors import promotions_blocked
from apps.reviews.services import gate_sweep, rollback_start
from apps.stream.models import Event


def test_a_reading_is_the_baselines_time_against_nothing_and_becomes_a_row_once(canary: Canary) -> None:
    row = canary.read()
    assert row.medians == {"2048x4096": 100.0, "1x128": 100.0} and row.noise == 0.004 and row.side is None
    verdict = Verdict.objects.get(purpose="canary")
    assert (row.verdict, verdict.team, verdict.against) == (verdict, None, {})
    assert row.base.kernel_id == verdict.kernel_id and row.base.job_id is None
    canary_sweep()
    assert CanaryReading.objects.count() == 1


def test_nothing_is_ordered_twice_nor_on_a_device_that_nobody_uses(world: World, canary: Canary) -> None:
    canary.later()
    canary_sweep()
    canary_sweep()
    assert Job.objects.filter(purpose="canary").count() == 1
    assert CanaryBase.objects.get().hardware == HARDWARE


def test_after_n_evaluations_it_takes_its_turn_among_rounds_otherwise_it_waits(
    world: World, canary: Canary, settings: object
) -> None:
    settings.CANARY_EVERY = 2  # type: ignore[attr-defined]
    assert canary.order().priority == 10
    job_fail_all()
    canary.later()
    Campaign.objects.update(state="running")
    canary_sweep()
    assert not Job.objects.filter(purpose="canary", state="queued").exists()  # a round may come any moment
    world.verdict(medium("1"))
    world.verdict(medium("2"))
    canary_sweep()
    assert Job.objects.get(purpose="canary", state="queued").priority == 20


def job_fail_all() -> None:
    leased = job_lease(hardware=HARDWARE, backends=["numba"])
    assert leased is not None
    job_fail(job_id=leased.pk, fence=leased.fence, error="broken", retry=False)
    canary_sweep()


def test_an_evaluator_that_fails_leaves_no_reading_and_is_asked_again_later(canary: Canary) -> None:
    canary.order()
    job_fail_all()
    assert not CanaryReading.objects.exists()
    canary_sweep()
    assert not Job.objects.filter(purpose="canary", state="queued").exists()
    canary.later()
    canary.order()


def test_two_slow_readings_open_a_drift_with_event_and_trail(drifted: Canary) -> None:
    drift = CanaryDrift.objects.get()
    assert "1.060 times" in drift.text and HARDWARE in drift.text
    assert drift_gap(HARDWARE) == drift.text and drift.text in promotions_blocked()
    steady = CanaryReading.objects.filter(side__isnull=True).latest("id")
    assert drift.since == steady.at
    assert Event.objects.filter(kind="canary.drifted", stream_id=drifted.world.team.stream).exists()
    assert AuditEntry.objects.filter(verb="canary.drifted").exists()


def test_a_slow_reading_alone_opens_nothing_and_the_next_is_urgent(canary: Canary) -> None:
    for factor in (1.0, 1.0, 1.0, 1.06):
        canary.read(factor)
    assert not CanaryDrift.objects.exists()
    canary.later()
    assert canary.order().priority == 20


def test_it_ends_by_itself_after_two_readings_within(drifted: Canary) -> None:
    drifted.read(1.001)
    assert drift_gap(HARDWARE) is not None
    drifted.read(1.0)
    row = CanaryDrift.objects.get()
    assert row.ended_at is not None and row.ended_by is None and drift_gap(HARDWARE) is None
    windows = drift_windows(HARDWARE)
    assert in_doubt(windows, row.opened_at) and not in_doubt(windows, row.ended_at + timedelta(seconds=1))
    assert not in_doubt(windows, row.since) and not in_doubt([], row.opened_at)
    assert Event.objects.filter(kind="canary.steady").exists()


def test_noise_widens_the_margin(canary: Canary) -> None:
    for factor in (1.0, 1.0, 1.0):
        canary.read(factor)
    for factor in (1.06, 1.06):
        canary.read(factor, noise=0.03)
    assert not CanaryDrift.objects.exists()


def test_a_baseline_that_is_refused_now_counts_as_beyond(canary: Canary) -> None:
    for _ in range(3):
        canary.read()
    for _ in range(2):
        assert canary.read(outcome="incorrect_numeric").side == 1
    assert "incorrect numeric" in CanaryDrift.objects.get().text


def test_infrastructure_faults_are_no_reading(canary: Canary) -> None:
    canary.later()
    canary.order()
    with pytest.raises(CanaryReading.DoesNotExist):
        canary.read(outcome="infra_error")


def test_another_environment_class_begins_another_reference_and_ends_the_drift(drifted: Canary) -> None:
    row = drifted.read(1.06, environment="cpu-test-model-1t / numba next")
    assert row.side is None
    assert "environment class" in CanaryDrift.objects.get().ended_because


def test_rebasing_needs_a_maintainer_and_a_reason_and_ends_the_drift(drifted: Canary) -> None:
    world, base = drifted.world, CanaryBase.objects.get()
    for person in (world.ben, world.vic, world.robot):
        with pytest.raises(Refused):
            canary_rebase(base=base, person=person, team=world.team, reason="new host")
    with pytest.raises(Invalid, match="needs a reason"):
        canary_rebase(base=base, person=world.maintainer, team=world.team, reason=" ")
    row = canary_rebase(base=base, person=world.maintainer, team=world.team, reason="new host")
    assert (row.by, row.reason, row.readings.count()) == (world.maintainer, "new host", 0)
    ended = CanaryDrift.objects.get()
    assert ended.ended_by == world.maintainer and "new host" in ended.ended_because
    assert AuditEntry.objects.get(verb="canary.rebased").reason == "new host"
    with pytest.raises(Invalid, match="already"):
        canary_rebase(base=base, person=world.maintainer, team=world.team, reason="again")


def test_promotions_wait_while_it_drifts_and_go_on_afterwards(drifted: Canary) -> None:
    world = drifted.world
    request = world.request(medium())
    world.decide(request, world.ben)
    gate_sweep()
    request.refresh_from_db()
    line = next(line for line in requirements(request) if line.code == "drift")
    assert (request.state, line.state) == ("approved", "not_met") and "drifts" in line.sentence
    CanaryDrift.objects.update(ended_at=timezone.now(), ended_because="steady", ended_by=world.maintainer)
    assert world.verify(request).state == "promoted"


def test_a_drift_that_opens_during_the_verification_holds_the_promotion_inside_its_transaction(
    canary: Canary,
) -> None:
    world, base = canary.world, canary.read().base
    request = world.request(medium())
    world.decide(request, world.ben)
    gate_sweep()
    now = timezone.now()
    CanaryDrift.objects.create(base=base, hardware=HARDWARE, environment_class=ENVIRONMENT, since=now, opened_at=now,
                               text="It drifts.")
    request.refresh_from_db()
    assert request.verify_job is not None
    world.answer(request.verify_job)
    gate_sweep()
    request.refresh_from_db()
    assert request.state == "verifying" and not Promotion.objects.exists()
    CanaryDrift.objects.update(ended_at=timezone.now(), ended_because="steady", ended_by=world.maintainer)
    measured = request.verify_job
    line = next(line for line in requirements(request) if line.code == "drift")
    assert line.state == "not_met" and "measured anew" in line.sentence
    gate_sweep()
    request.refresh_from_db()
    assert (request.state, request.verify_verdict) == ("verifying", None) and not Promotion.objects.exists()
    assert request.verify_job is not None and request.verify_job != measured
    world.answer(request.verify_job)
    gate_sweep()
    request.refresh_from_db()
    assert request.state == "promoted" and request.promotion.verdict == request.verify_job.verdict


def test_the_database_itself_refuses_a_promotion_on_a_drifting_device(
    drifted: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = drifted.world
    monkeypatch.setattr("apps.reviews.gate.drift_gap", lambda hardware: None)
    monkeypatch.setattr("apps.reviews.gate.verified_in_drift", lambda request: False)
    request = world.request(medium())
    world.decide(request, world.ben)
    gate_sweep()
    request.refresh_from_db()
    assert request.verify_job is not None
    world.answer(request.verify_job)
    gate_sweep()
    request.refresh_from_db()
    assert not Promotion.objects.exists() and request.state == "stale" and "drifts" in request.cause


def test_a_rollback_rests_on_correctness_and_does_not_wait(canary: Canary) -> None:
    world = canary.world
    first = world.promote(medium("1"), world.ben)
    world.new_campaign().promote(medium("2"), world.cem)
    Campaign.objects.update(state="plateau")
    for factor in (1.0, 1.001, 0.999, 1.06, 1.06):
        canary.read(factor)
    row = rollback_start(slot=world.campaign.slot, promotion=first.promotion, person=world.ben, reason="wrong answers",
                         reauthenticated_at=timezone.now())
    world.answer(row.job)
    gate_sweep()
    assert Champion.objects.get().kernel_id == first.kernel_id


def test_the_baseline_that_ships_now_takes_over(canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    canary.read()
    real = __import__("apps.bridge.api", fromlist=["api"]).baseline_source("rms_norm", "numba")
    monkeypatch.setattr("apps.bridge.api.baseline_source", lambda name, backend: real + b"\n# newer\n")
    canary.later()
    canary_sweep()
    old, new = CanaryBase.objects.order_by("id")
    assert old.ended_at is not None and new.ended_at is None and "baseline changed" in new.reason


def test_integrity_one_open_drift_per_base(drifted: Canary) -> None:
    row = CanaryDrift.objects.get()
    row.pk = None
    with pytest.raises(IntegrityError):
        row.save()
