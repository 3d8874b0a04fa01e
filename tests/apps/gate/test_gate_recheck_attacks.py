"""Ways for a champion to escape its check, or for a machine that is not its device to set it aside."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from gate_world import ENVIRONMENT, HARDWARE, World, light, medium, verdict_document

from apps.campaigns.jobs.services import job_complete, job_lease
from apps.campaigns.models import Job
from apps.kernels.models import Quarantine, Slot
from apps.reviews.models import Verification
from apps.reviews.services import champions_recheck, gate_sweep


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
