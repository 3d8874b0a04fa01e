"""Champions under a new evaluator or in a new environment class: checked again, and set aside where they fail."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from gate_world import ENVIRONMENT, HARDWARE, World, light, medium, verdict_document

from apps.audit.models import AuditEntry
from apps.campaigns.jobs.services import job_complete, job_fail, job_lease
from apps.campaigns.jobs.workers import selftest_record
from apps.campaigns.models import Job
from apps.kernels.models import Champion, Promotion, Quarantine, Slot, Verdict
from apps.reviews.models import Verification
from apps.reviews.rechecks import outdated
from apps.reviews.services import champion_quarantine, champions_recheck, gate_sweep, rollback_start
from apps.reviews.services.recheck import LOWEST
from apps.stream.models import Event
from apps.teams.services import token_create

NEXT = ENVIRONMENT + " next"


@pytest.fixture
def crowned(world: World) -> World:
    """A slot with a champion."""
    assert world.promote(medium("1"), world.ben).state == "promoted"
    return world


def slot_of(world: World) -> Slot:
    return Slot.objects.get(pk=world.campaign.slot_id)


def answer(world: World, job: Job, *, environment: str = ENVIRONMENT, **facts: object) -> Verdict:
    """As ``World.answer``, from a device of the given environment class."""
    leased = job_lease(hardware=HARDWARE, backends=["numba"])
    assert leased is not None and leased.pk == job.pk
    document, samples = verdict_document(leased, **facts)  # type: ignore[arg-type]
    document["environment"]["class"] = environment
    return job_complete(job_id=leased.pk, fence=leased.fence, document=document, samples=samples)


def new_class(world: World) -> None:
    """A driver or compiler was renewed: the newest timed verdict is of another class."""
    selftest_record(evaluator_version=Verdict.objects.latest("id").evaluator_version, environment_class=NEXT,
                    isolation=3, backend="numba", quick=True, passed=True, report={})
    answer(world, world.job(world.kernel(light(32))), environment=NEXT)


def recheck(world: World, **facts: object) -> Verification:
    assert champions_recheck() == 1
    row = Verification.objects.filter(kind="recheck").latest("id")
    assert row.job is not None
    answer(world, row.job, **facts)
    gate_sweep()
    row.refresh_from_db()
    return row


def test_a_new_environment_class_checks_the_champion_with_the_least_priority(crowned: World) -> None:
    assert champions_recheck() == 0
    new_class(crowned)
    assert "environment class" in (outdated(Champion.objects.get()) or "")
    row = recheck(crowned, environment=NEXT)
    assert (row.state, row.job.priority, slot_of(crowned).state) == ("done", LOWEST, "champion")
    assert outdated(Champion.objects.get()) is None and champions_recheck() == 0


def test_one_that_fails_is_quarantined_with_event_trail_and_sentence(crowned: World) -> None:
    new_class(crowned)
    recheck(crowned, environment=NEXT, outcome="incorrect_numeric")
    slot = slot_of(crowned)
    assert slot.state == "quarantined" and "incorrect numeric: It is" in slot.state_reason
    assert Quarantine.objects.get().kernel_id == Champion.objects.get().kernel_id
    assert Event.objects.filter(kind="champion.quarantined").exists()
    assert AuditEntry.objects.filter(verb="champion.quarantined", actor=None).exists()
    assert champions_recheck() == 0


def test_a_quarantined_champion_is_not_handed_out_and_an_outdated_one_says_so(crowned: World) -> None:
    _, secret = token_create(team=crowned.team, user=crowned.robot, name="serving", by=crowned.maintainer)
    ask = lambda: Client().get("/api/v1/champions/rms_norm?workload=llm",  # noqa: E731
                               headers={"authorization": f"Bearer {secret}"})
    assert ask().json()["reverifying"] is None
    new_class(crowned)
    assert "last check" in ask().json()["reverifying"]
    recheck(crowned, environment=NEXT, outcome="incorrect_numeric")
    answered = ask()
    assert answered.status_code == 409 and answered.json()["code"] == "slot_quarantined"


@pytest.mark.parametrize("outcome", ["infra_error", "unsupported_here"])
def test_an_infrastructure_fault_is_tried_again_and_quarantines_nothing(crowned: World, outcome: str) -> None:
    new_class(crowned)
    champions_recheck()
    row = Verification.objects.get(kind="recheck")
    leased = job_lease(hardware=HARDWARE, backends=["numba"])
    assert leased is not None
    document, _ = verdict_document(leased, outcome="infra_error")
    document["outcome"] = outcome
    job_complete(job_id=leased.pk, fence=leased.fence, document=document, samples=None)
    gate_sweep()
    row.refresh_from_db()
    assert row.state == "refused" and "no answer" in row.cause and slot_of(crowned).state == "champion"
    assert champions_recheck() == 0  # not over and over
    Verification.objects.filter(pk=row.pk).update(ended_at=timezone.now() - timedelta(minutes=11))
    assert champions_recheck() == 1


def test_an_evaluator_that_breaks_three_times_quarantines_nothing(crowned: World) -> None:
    new_class(crowned)
    champions_recheck()
    for _ in range(3):
        leased = job_lease(hardware=HARDWARE, backends=["numba"])
        assert leased is not None
        job_fail(job_id=leased.pk, fence=leased.fence, error="no torch here")
    gate_sweep()
    row = Verification.objects.get(kind="recheck")
    assert row.state == "refused" and "no torch here" in row.cause
    assert slot_of(crowned).state == "champion"


def test_what_a_busy_machine_may_cause_counts_when_it_comes_twice(crowned: World) -> None:
    new_class(crowned)
    row = recheck(crowned, environment=NEXT, outcome="timeout")
    assert row.state == "done" and "once more" in row.cause and slot_of(crowned).state == "champion"
    recheck(crowned, environment=NEXT, outcome="timeout")
    assert slot_of(crowned).state == "quarantined"


def test_once_slow_then_right_is_right(crowned: World) -> None:
    new_class(crowned)
    recheck(crowned, environment=NEXT, outcome="timeout")
    recheck(crowned, environment=NEXT)
    assert slot_of(crowned).state == "champion" and champions_recheck() == 0


def test_a_check_without_walls_does_not_count(crowned: World) -> None:
    new_class(crowned)
    row = recheck(crowned, environment=NEXT, isolation=1)
    assert row.state == "refused" and "not where it counts" in row.cause
    assert slot_of(crowned).state == "champion" and outdated(Champion.objects.get()) is not None


def test_a_fail_of_the_former_champion_says_nothing_about_the_new_one(crowned: World) -> None:
    new_class(crowned)
    champions_recheck()
    row = Verification.objects.get(kind="recheck")
    Job.objects.filter(pk=row.job_id).update(priority=39)  # it goes first among what comes now
    other = crowned.new_campaign()
    verdict = Verdict.objects.latest("id")
    leased = job_lease(hardware=HARDWARE, backends=["numba"])
    assert leased is not None and leased.pk == row.job_id
    request = other.request(medium("2"))
    other.decide(request, other.cem)
    assert other.verify(request).state == "promoted"
    document, _ = verdict_document(leased, outcome="incorrect_nan")
    job_complete(job_id=leased.pk, fence=leased.fence, document=document, samples=None)
    gate_sweep()
    row.refresh_from_db()
    assert row.state == "refused" and "champion changed" in row.cause
    assert slot_of(crowned).state == "champion" and not Quarantine.objects.exists()
    assert verdict.outcome == "passed"


def test_a_rollback_does_not_wait_for_a_recheck(crowned: World) -> None:
    first = Promotion.objects.get()
    crowned.new_campaign().promote(medium("2"), crowned.cem)
    new_class(crowned)
    champions_recheck()
    row = rollback_start(slot=slot_of(crowned), promotion=first, person=crowned.ben, reason="wrong in serving",
                         reauthenticated_at=timezone.now())
    assert Verification.objects.get(kind="recheck").state == "refused"
    answer(crowned, row.job, environment=NEXT)
    gate_sweep()
    assert Champion.objects.get().kernel_id == first.kernel_id


def test_a_rollback_out_of_quarantine(crowned: World) -> None:
    first = Promotion.objects.get()
    crowned.new_campaign().promote(medium("2"), crowned.cem)
    new_class(crowned)
    recheck(crowned, environment=NEXT, outcome="out_of_bounds")
    row = rollback_start(slot=slot_of(crowned), promotion=first, person=crowned.ben, reason="it is out of bounds",
                         reauthenticated_at=timezone.now())
    answer(crowned, row.job, environment=NEXT)
    gate_sweep()
    slot = slot_of(crowned)
    assert slot.state == "champion" and Champion.objects.get().kernel_id == first.kernel_id
    assert slot.state_reason == ""


def test_killed_between_verdict_and_sweep_nothing_is_lost_or_done_twice(crowned: World) -> None:
    new_class(crowned)
    champions_recheck()
    row = Verification.objects.get(kind="recheck")
    answer(crowned, row.job, environment=NEXT, outcome="incorrect_nan")
    for _ in range(3):
        champions_recheck()
    assert Verification.objects.filter(kind="recheck").count() == 1
    gate_sweep()
    gate_sweep()
    assert Quarantine.objects.count() == 1 and slot_of(crowned).state == "quarantined"


def test_one_that_waited_for_long_takes_its_turn_among_rounds(crowned: World) -> None:
    new_class(crowned)
    champions_recheck()
    Job.objects.filter(verification__kind="recheck").update(created_at=timezone.now() - timedelta(minutes=31))
    champions_recheck()
    assert Job.objects.get(verification__kind="recheck").priority == 20


def test_by_hand_it_needs_a_reviewer(crowned: World) -> None:
    champion_quarantine(slot=slot_of(crowned), reason="wrong at 1x1", person=crowned.ben)
    assert slot_of(crowned).state == "quarantined"
