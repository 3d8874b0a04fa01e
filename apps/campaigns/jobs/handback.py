"""Handing a job back unharmed: the worker ends or makes way; neither candidate nor evaluator failed."""

from __future__ import annotations

import uuid

from django.db.models import F

from apps.campaigns.choices import JobState
from apps.campaigns.jobs.models import Job
from apps.campaigns.jobs.progress import attempt_over
from apps.campaigns.jobs.waiting import due
from apps.core.errors import LeaseLost
from apps.core.leases import NO_OWNER


def job_release(*, job_id: uuid.UUID, fence: int, reason: str) -> None:
    """Put a leased job back into the queue without counting an attempt.

    Raises:
        LeaseLost: the token is not the present one; its new owner decides.
    """
    given_back = Job.objects.filter(pk=job_id, fence=fence, state=JobState.LEASED).update(
        state=JobState.QUEUED, version=F("version") + 1, error=reason, progress={}, stages=[], **NO_OWNER)
    if not given_back:
        raise LeaseLost(f"Job {str(job_id)[:8]} is held by another worker or ended by now; nothing was changed.")
    attempt_over(Job.objects.select_related("campaign", "round").get(pk=job_id))


def urgent_job_waits(*, job: Job) -> bool:
    """Whether a more urgent job waits for the device that ``job`` occupies."""
    return due().filter(hardware=job.hardware, priority__gt=job.priority).exists()
