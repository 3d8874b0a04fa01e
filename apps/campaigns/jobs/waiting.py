"""Which queued jobs a worker would be given now: what waits for a person or for a device keeps nobody from anything."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from apps.campaigns.choices import JobPurpose, JobState
from apps.campaigns.jobs.devices import devices_served
from apps.campaigns.jobs.models import Job

ON_DEVICE = (JobPurpose.PROMOTION, JobPurpose.CANARY)
"""What only the device can answer, and no dry run."""


def due() -> QuerySet[Job]:
    """Queued jobs but those of campaigns that are paused or over; promotions go on whatever became of theirs."""
    return Job.objects.filter(state=JobState.QUEUED).filter(
        Q(campaign__isnull=True) | Q(purpose="promotion") | Q(campaign__state__in=["running", "plateau", "finished"]))


def in_reach(hardware: str | None) -> Q:
    """Jobs that the worker of ``hardware`` or another one that reported lately can do; of any device for ``None``."""
    if hardware is None:
        return Q()
    return Q(hardware__in=[*devices_served(), hardware]) | Q(backend="triton") & ~Q(purpose__in=ON_DEVICE)
