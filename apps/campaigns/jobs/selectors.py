"""Reading the queue, the workers and what their devices still lack for promotions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.bridge import api
from apps.campaigns.choices import JOB_OPEN, JobPurpose, JobState
from apps.campaigns.jobs.models import Job, SelfTest, Worker
from apps.campaigns.jobs.waiting import due
from apps.campaigns.jobs.workers import selftest_gap
from apps.kernels.models import Verdict


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """A worker and whether it is there: it reported in time and its process lives."""

    worker: Worker
    up: bool


def workers() -> list[WorkerStatus]:
    """All workers that ever reported, with whether they are up now."""
    return [WorkerStatus(worker, is_up(worker)) for worker in Worker.objects.all()]


def is_up(worker: Worker) -> bool:
    """Reported within ten seconds, and not known dead."""
    owner = worker.owner()
    if owner is None or worker.lease_expires_at is None or worker.lease_expires_at <= timezone.now():
        return False
    return owner.alive() is not False


def jobs_ahead(job: Job) -> int:
    """How many jobs for the same device come before this one; those of paused campaigns come before nobody."""
    if job.state != JobState.QUEUED:
        return 0
    same = Q(hardware=job.hardware, backend=job.backend) & ~Q(pk=job.pk)
    earlier = Q(priority__gt=job.priority) | Q(priority=job.priority, created_at__lt=job.created_at)
    return Job.objects.filter(same, state=JobState.LEASED).count() + due().filter(same & earlier).count()


def queue() -> QuerySet[Job]:
    """Jobs that wait or run, the most urgent first."""
    return Job.objects.filter(state__in=JOB_OPEN).select_related("campaign", "team", "kernel", "round")


def untimed(campaign: Any) -> QuerySet[Job]:
    """Jobs of a campaign's rounds on a GPU's backend whose kernel passed and was timed nowhere, oldest first: what a
    GPU host is still to measure."""
    passed = Job.objects.filter(campaign=campaign, backend="triton", purpose=JobPurpose.ROUND,
                                verdict__outcome="passed", verdict__evidence="")
    return passed.order_by("created_at", "pk")


def requests_untimed(campaign: Any) -> list[dict[str, Any]]:
    """The evaluation requests of ``untimed``, as they were asked."""
    return list(untimed(campaign).values_list("request", flat=True))


def selftests() -> list[SelfTest]:
    """The newest quick and the newest whole self-test of each environment class, isolation level and backend, newest
    first; those of earlier evaluator versions only while this one has none."""
    newest: dict[tuple[str, int, str, bool], SelfTest] = {}
    rows = list(SelfTest.objects.filter(evaluator_version=api.evaluator_version())[:200])
    for row in rows or SelfTest.objects.all()[:200]:
        newest.setdefault((row.environment_class, row.isolation, row.backend, row.quick), row)
    return list(newest.values())


def environment_class_now(hardware: str, backend: str) -> str:
    """The environment class of a device with a backend: that of the newest timed verdict made here; empty if none."""
    newest = Verdict.objects.filter(hardware=hardware, kernel__backend=backend, foreign=False).exclude(evidence="")
    return newest.order_by("-id").values_list("environment_class", flat=True).first() or ""


def devices_not_ready() -> list[str]:
    """What the evaluation devices lack for promotions, in sentences; a part of ``reviews.promotions_blocked``."""
    reasons: list[str] = []
    devices = [status for status in workers() if status.worker.kind == "evalworker"]
    if not any(status.up for status in devices):
        reasons.append("No evaluation worker is running, so nothing can be verified. It starts with `serve`.")
    for status in devices:
        if not status.up:
            continue
        worker = status.worker
        level = worker.isolation
        if level is None:
            reasons.append(f"The isolation of {worker.name} is not proved yet; the first evaluation proves it.")
            continue
        if level < settings.REQUIRED_ISOLATION:
            reasons.append(f"{worker.name} proved isolation level {level}; promotions need at least "
                           f"{settings.REQUIRED_ISOLATION}. Run `python -m harness doctor` for the remedy.")
            continue
        for backend in worker.backends:
            known = environment_class_now(worker.hardware, backend)
            gap = selftest_gap(known, level, backend) if known else None
            if gap:
                reasons.append(f"{worker.name}, {backend}: {gap}")
    return reasons
