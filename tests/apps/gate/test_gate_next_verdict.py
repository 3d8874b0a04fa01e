"""Attacks on the choice of the verdict that a next request shows: staleness that is provoked earns no nicer one.

A verification takes the place of the round's verdict only where it shows what no approver had seen.
"""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from gate_world import HARDWARE, World, light, medium, verdict_document

from apps.campaigns.jobs.services import job_complete, job_lease
from apps.campaigns.models import Job
from apps.kernels.models import Verdict
from apps.reviews.models import ReviewRequest
from apps.reviews.services import gate_sweep, policy_set, stale_check

pytestmark = pytest.mark.django_db


def submitted(world: World, client: Client) -> ReviewRequest:
    """The request that the campaign's starter opens in the browser."""
    client.force_login(world.ada)
    client.post(reverse("campaign-act", args=[world.campaign.pk, "submit"]))
    return ReviewRequest.objects.latest("id")


def set_policy(world: World, **changes: int) -> None:
    """Light changes go by themselves; any further change of the policy makes open requests stale."""
    policy_set(team=world.team, person=world.maintainer, light_auto_promote=True, **changes)


def recorded(job: Job, **facts: object) -> Verdict:
    """What a worker that holds ``job`` records."""
    document, samples = verdict_document(job, **facts)  # type: ignore[arg-type]
    return job_complete(job_id=job.pk, fence=job.fence, document=document, samples=samples)


def test_a_verification_does_not_outdate_a_failure_that_was_recorded_before_it(world: World, client: Client) -> None:
    world.measure_baseline()
    verdict = world.round(medium())
    first = submitted(world, client)
    world.decide(first, world.ben)
    gate_sweep()
    world.job(verdict.kernel, purpose="probe")
    held = {job.purpose: job for job in (job_lease(hardware=HARDWARE, backends=["numba"]) for _ in range(2)) if job}
    failure = recorded(held["probe"], outcome="incorrect_numeric")
    later = recorded(held["promotion"])
    assert failure.pk < later.pk
    gate_sweep()
    first.refresh_from_db()
    assert (first.state, first.cause_code, first.verify_verdict) == ("stale", "fresh", later)
    second = submitted(world, client)
    assert (second.pk != first.pk, second.verdict) == (True, verdict)
    assert stale_check(second) and second.cause_code == "verdict_superseded"


@pytest.mark.parametrize("shown", [{"suspicious": ("over the roof",)}, {"slow_shape": True}])
def test_a_nicer_verification_does_not_stand_for_a_verdict_that_a_person_must_look_at(
    world: World, client: Client, shown: dict
) -> None:
    set_policy(world)
    world.measure_baseline()
    verdict = world.round(light(), **shown)
    first = submitted(world, client)
    world.decide(first, world.ben, ticked=verdict.regressions)
    gate_sweep()
    first.refresh_from_db()
    set_policy(world, approvals_heavy=3)
    world.answer(first.verify_job)
    gate_sweep()
    first.refresh_from_db()
    assert (first.state, first.verify_verdict.outcome) == ("stale", "passed")
    assert not first.verify_verdict.suspicious and not first.verify_verdict.regressions
    second = submitted(world, client)
    assert (second.pk != first.pk, second.verdict, second.auto, second.state) == (True, verdict, False, "open")
