"""Ways for a champion to escape its check, or for a machine that is not its device to set it aside."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from gate_attack import refused_by_database
from gate_world import ENVIRONMENT, HARDWARE, World, light, medium, verdict_document

from apps.campaigns.jobs.services import job_complete, job_fail, job_lease
from apps.campaigns.jobs.workers import selftest_record
from apps.campaigns.models import Job, SelfTest
from apps.kernels.models import Promotion, Quarantine, Slot
from apps.reviews.gate import requirements
from apps.reviews.models import Verification
from apps.reviews.services import champion_quarantine, champions_recheck, gate_sweep, policy_set, rollback_start


@pytest.fixture
def outdated(world: World) -> World:
    """A champion, and a device that was renewed since."""
    assert world.promote(medium("1"), world.ben).state == "promoted"
    job = world.job(world.kernel(light(32)))
    leased = job_lease(hardware=HARDWARE, backends=["numba"])
    assert leased is not None and leased.pk == job.pk
    document, samples = verdict_document(leased)
    document["environment"]["class"] = ENVIRONMENT + " next"
    job_complete(job_id=leased.pk, fence=leased.fence, document=document, samples=samples)
    return world


@pytest.mark.parametrize("outcome", ["incorrect_numeric", "timeout"])
def test_what_is_refused_elsewhere_sets_no_champion_aside(outdated: World, outcome: str) -> None:
    for _ in range(2):
        assert champions_recheck() == 1
        leased = job_lease(hardware=HARDWARE, backends=["numba"])
        assert leased is not None
        document, _ = verdict_document(leased, outcome=outcome)
        document["hardware"] = "interpreter"
        job_complete(job_id=leased.pk, fence=leased.fence, document=document, samples=None)
        gate_sweep()
        Verification.objects.update(ended_at=timezone.now() - timedelta(hours=1))
    assert not Quarantine.objects.exists()
    assert Slot.objects.get(pk=outdated.campaign.slot_id).state == "champion"
    assert set(Verification.objects.values_list("state", flat=True)) == {"refused"}


def test_an_end_dated_ahead_puts_no_check_off(outdated: World) -> None:
    assert champions_recheck() == 1
    Job.objects.filter(state="queued").update(state="cancelled", ended_at=timezone.now())
    gate_sweep()
    assert champions_recheck() == 0
    Verification.objects.update(ended_at=timezone.now() + timedelta(days=300))
    assert champions_recheck() == 1


@pytest.mark.parametrize(("purpose", "taken"), [("promotion", False), ("canary", False), ("round", True)])
def test_what_only_the_device_can_answer_waits_for_it(world: World, purpose: str, taken: bool) -> None:
    """Without its worker for a day, a verification went to the interpreter, which closed the request."""
    job = world.job(world.kernel(medium()))
    Job.objects.filter(pk=job.pk).update(backend="triton", hardware="nvidia-h200", purpose=purpose)
    assert (job_lease(hardware=HARDWARE, backends=["numba", "triton"]) is not None) is taken


def relight(value: int = 16) -> bytes:
    """A light change of the champion ``medium("1")``."""
    return medium("1").replace(b'"BLOCK": 8', b'"BLOCK": %d' % value)


@pytest.fixture
def by_itself(world: World) -> World:
    """A champion of a team whose light changes go by themselves."""
    policy_set(team=world.team, person=world.maintainer, light_auto_promote=True)
    assert world.promote(medium("1"), world.ben).state == "promoted"
    return world.new_campaign()


def test_no_light_change_of_a_quarantined_champion_goes_by_itself(by_itself: World) -> None:
    """The quarantined kernel itself would be back under another digest, and no person had looked."""
    champion_quarantine(slot=Slot.objects.get(), reason="it reads what it may not", person=by_itself.ben)
    request = by_itself.request(relight())
    assert (request.gate_tier, request.auto, request.state) == ("light", False, "open")


def test_one_on_its_way_stops_when_its_champion_is_quarantined(
    by_itself: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = by_itself.request(relight())
    assert request.auto
    gate_sweep()
    champion_quarantine(slot=Slot.objects.get(), reason="it reads what it may not", person=by_itself.ben)
    request.refresh_from_db()
    assert request.verify_job is not None
    by_itself.answer(request.verify_job)
    line = next(line for line in requirements(request) if line.code == "approvals")
    assert line.state == "not_met" and "quarantined" in line.sentence
    monkeypatch.setattr("apps.reviews.gate.unmet", lambda request, **_: [])  # the database refuses it too
    gate_sweep()
    request.refresh_from_db()
    assert request.state == "stale" and "quarantined" in request.cause
    assert Slot.objects.get().state == "quarantined" and Promotion.objects.count() == 1


def test_a_check_that_made_way_for_a_rollback_is_ordered_again_at_once(outdated: World) -> None:
    """Rollbacks that come to nothing, one after the other, would keep a champion unverified for good."""
    first = Promotion.objects.get()
    assert outdated.new_campaign().promote(medium("2"), outdated.cem).state == "promoted"
    job = outdated.job(outdated.kernel(light(64)))
    leased = job_lease(hardware=HARDWARE, backends=["numba"])
    assert leased is not None and leased.pk == job.pk
    document, samples = verdict_document(leased)
    document["environment"]["class"] = ENVIRONMENT + " after"
    job_complete(job_id=leased.pk, fence=leased.fence, document=document, samples=samples)
    assert champions_recheck() == 1
    rollback_start(slot=Slot.objects.get(), promotion=first, person=outdated.ben, reason="slow",
                   reauthenticated_at=timezone.now())
    leased = job_lease(hardware=HARDWARE, backends=["numba"])
    assert leased is not None
    job_fail(job_id=leased.pk, fence=leased.fence, error="broken", retry=False)
    gate_sweep()
    assert champions_recheck() == 1


def test_approvals_from_before_a_quarantine_promote_nothing(world: World) -> None:
    """What was compared with a champion that is set aside since says little, and its approvers did not know."""
    assert world.promote(medium("1"), world.ben).state == "promoted"
    world = world.new_campaign()
    request = world.request(relight())
    world.decide(request, world.cem)
    gate_sweep()
    request.refresh_from_db()
    assert request.state == "verifying" and request.verify_job is not None
    champion_quarantine(slot=Slot.objects.get(), reason="wrong at 1x1", person=world.ben)
    world.answer(request.verify_job)
    gate_sweep()
    request.refresh_from_db()
    assert request.state == "stale" and "quarantined since" in request.cause and Promotion.objects.count() == 1
    again = world.new_campaign().request(relight())
    world.decide(again, world.cem)
    assert world.verify(again).state == "promoted"


def test_no_statement_turns_a_failed_self_test_into_a_passed_one(world: World) -> None:
    row = SelfTest.objects.get()
    for change in (lambda: SelfTest.objects.filter(pk=row.pk).update(isolation=2), row.delete):
        refused_by_database(change, "never")


def test_a_rollback_is_verified_behind_the_walls_that_the_installation_asks_for(
    world: World, settings: object
) -> None:
    assert world.promote(medium("1"), world.ben).state == "promoted"
    first = Promotion.objects.get()
    assert world.new_campaign().promote(medium("2"), world.cem).state == "promoted"
    tests = SelfTest.objects.get()
    selftest_record(evaluator_version=tests.evaluator_version, environment_class=ENVIRONMENT, isolation=2,
                    backend="numba", quick=True, passed=True, report={})
    settings.REQUIRED_ISOLATION = 3  # type: ignore[attr-defined]
    row = rollback_start(slot=Slot.objects.get(), promotion=first, person=world.ben, reason="slow",
                         reauthenticated_at=timezone.now())
    assert row.job is not None
    world.answer(row.job, isolation=2)
    gate_sweep()
    row.refresh_from_db()
    assert row.state == "refused" and "isolation level 2" in row.cause and Promotion.objects.count() == 2
