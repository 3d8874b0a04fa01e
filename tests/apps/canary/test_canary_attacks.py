"""Ways to make a drift end, never be seen, or carry a promotion all the same; each was tried."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from canary_world import Canary
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from gate_world import HARDWARE, World, medium, verdict_document

from apps.campaigns.canary.due import Order
from apps.campaigns.canary.models import CanaryBase, CanaryDrift, CanaryReading
from apps.campaigns.canary.orders import _order
from apps.campaigns.canary.selectors import drift_gap
from apps.campaigns.canary.services import canary_sweep
from apps.campaigns.jobs.services import job_complete, job_lease
from apps.campaigns.models import Campaign, Job
from apps.core.screens.canary import canary_rows


def refused(statement: str, match: str, values: list[Any] | None = None) -> None:
    with pytest.raises(IntegrityError, match=match), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values or [])


def test_no_statement_ends_a_drift_or_changes_what_it_rests_on(drifted: Canary) -> None:
    now = timezone.now()
    refused("DELETE FROM campaigns_canarydrift", "never deleted")
    refused("DELETE FROM campaigns_canarybase", "never deleted")
    refused("DELETE FROM campaigns_canaryreading", "never deleted")
    refused("UPDATE campaigns_canaryreading SET side = 0", "never changed")
    refused("UPDATE campaigns_canarydrift SET hardware = 'other'", "is history")
    refused("UPDATE campaigns_canarybase SET hardware = 'other'", "is fixed")
    end = "UPDATE campaigns_canarydrift SET ended_at = %s, ended_because = 'so'"
    refused(end, "two readings", [now])
    refused(f"{end}, ended_by_id = %s", "two readings", [now, drifted.world.ben.pk])
    refused(f"{end}, ended_by_id = %s", "two readings", [now, drifted.world.robot.pk])
    reading = CanaryReading.objects.latest("id")
    reading.pk, reading.verdict, reading.side = None, drifted.world.verdict(medium()), 0
    with pytest.raises(IntegrityError, match="canary's verdict"), transaction.atomic():
        reading.save()
    assert drift_gap(HARDWARE) is not None


def test_a_drift_that_ended_stays_as_it_was(drifted: Canary) -> None:
    for _ in range(2):
        drifted.read()
    assert drift_gap(HARDWARE) is None
    refused("UPDATE campaigns_canarydrift SET ended_at = NULL", "is history")
    refused("UPDATE campaigns_canarydrift SET ended_because = 'other'", "is history")


def test_noise_ends_no_drift(drifted: Canary) -> None:
    """Whoever keeps the machine busy widens the margin until every reading lies within it."""
    for _ in range(2):
        assert drifted.read(1.06, noise=0.03).side == 1
    assert drift_gap(HARDWARE) is not None


def test_a_reading_for_an_idle_device_takes_its_turn_once_it_is_due(
    world: World, canary: Canary, settings: Any
) -> None:
    """Rounds that never cease would keep it in the queue for ever, and with it every other reading."""
    settings.CANARY_EVERY = 2
    job = canary.order()
    Campaign.objects.update(state="running")
    CanaryBase.objects.update(ordered_at=timezone.now() - timedelta(hours=1))
    canary_sweep()
    job.refresh_from_db()
    assert job.priority == 10
    for tag in "12":
        world.verdict(medium(tag))
    canary_sweep()
    job.refresh_from_db()
    assert job.priority == 20 and Job.objects.filter(purpose="canary").count() == 1


def test_a_clock_that_was_ahead_does_not_silence_it(world: World, canary: Canary, settings: Any) -> None:
    settings.CANARY_EVERY = 2
    canary.read()
    CanaryBase.objects.update(ordered_at=timezone.now() + timedelta(days=300))
    for tag in "12":
        world.verdict(medium(tag))
    canary_sweep()
    assert Job.objects.filter(purpose="canary", state="queued").count() == 1


def test_two_engines_order_one_reading(canary: Canary) -> None:
    canary.order()
    base = CanaryBase.objects.get()
    base.job = None  # as the other engine read it a moment ago
    _order(base, Order("twice", urgent=True))
    assert Job.objects.filter(purpose="canary").count() == 1


def odd(canary: Canary, **changes: Any) -> CanaryReading:
    """A reading whose verdict or shapes are changed."""
    canary.later()
    canary.order()
    leased = job_lease(hardware=HARDWARE, backends=["numba"])
    assert leased is not None
    document, samples = verdict_document(leased)
    document["comparison"], document["compared_with"], document["timing"]["overall"] = "none", None, {}
    for place, shape in enumerate(document["timing"]["shapes"]):
        shape |= {"versus": {}, **{key: f"{value}{place}" if key == "shape" else value
                                   for key, value in changes.items()}}
    job_complete(job_id=leased.pk, fence=leased.fence, document=document, samples=samples)
    canary_sweep()
    return CanaryReading.objects.latest("id")


def test_other_shapes_begin_a_reference_of_their_own_and_stop_nothing(canary: Canary) -> None:
    """The engine fell over them, for all devices and for good."""
    for _ in range(3):
        canary.read()
    assert [odd(canary, shape="new").side for _ in range(4)] == [None, None, None, 0]
    (row,) = canary_rows()
    assert row["count"] == 4 and row["plot"] is not None


@pytest.mark.parametrize("median", [0.0, -1.0])
def test_a_baseline_that_takes_no_time_is_refused(canary: Canary, median: float) -> None:
    for _ in range(3):
        canary.read()
    assert [odd(canary, median_us=median).side for _ in range(2)] == [1, 1]
    assert CanaryDrift.objects.filter(ended_at__isnull=True).exists() and canary_rows()


def test_what_an_interpreter_says_is_no_reading(canary: Canary) -> None:
    canary.later()
    canary.order()
    leased = job_lease(hardware=HARDWARE, backends=["numba"])
    assert leased is not None
    document, _ = verdict_document(leased, outcome="timeout")
    document["hardware"] = "interpreter"
    job_complete(job_id=leased.pk, fence=leased.fence, document=document, samples=None)
    canary_sweep()
    assert not CanaryReading.objects.exists() and CanaryBase.objects.get().job is None
