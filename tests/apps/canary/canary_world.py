"""Readings of a device's frozen baseline, as the worker would hand them in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone
from gate_world import HARDWARE, World, verdict_document

from apps.campaigns.canary.models import CanaryBase, CanaryReading
from apps.campaigns.canary.services import canary_sweep
from apps.campaigns.jobs.services import job_complete, job_lease
from apps.campaigns.models import Job, Worker


@dataclass
class Canary:
    """Lets time pass and answers the canary's jobs with given figures."""

    world: World

    def later(self) -> None:
        """The last order is long ago, nothing was done just now, and the worker started again: a reading is due."""
        past = timezone.now() - timedelta(hours=1)
        CanaryBase.objects.update(ordered_at=past)
        Job.objects.filter(ended_at__isnull=False).update(ended_at=past)
        Worker.objects.update(started_at=timezone.now())

    def order(self) -> Job:
        """The job that is due now."""
        canary_sweep()
        return Job.objects.get(purpose="canary", state="queued")

    def read(self, factor: float = 1.0, *, noise: float = 0.004, environment: str = "", **facts: Any) -> CanaryReading:
        """One reading with times ``factor`` of the usual."""
        self.later()
        job = self.order()
        leased = job_lease(hardware=HARDWARE, backends=["numba"])
        assert leased is not None and leased.pk == job.pk
        document, samples = verdict_document(leased, **facts)
        document["environment"]["class"] = environment or document["environment"]["class"]
        if document["timing"]:
            document["comparison"], document["compared_with"], document["timing"]["overall"] = "none", None, {}
            document["timing"]["noise"] = noise
            for shape in document["timing"]["shapes"]:
                shape["versus"], shape["median_us"] = {}, 100.0 * factor
        job_complete(job_id=leased.pk, fence=leased.fence, document=document, samples=samples)
        canary_sweep()
        return CanaryReading.objects.latest("id")
