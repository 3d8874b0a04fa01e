"""The queue. Every write of a holder carries its fencing token and counts only while the token is the present one."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from apps.bridge import api
from apps.campaigns.choices import JOB_ATTEMPTS, JOB_MACHINE, JOB_OPEN, PRIORITIES, JobPurpose, JobState
from apps.campaigns.jobs.devices import devices_served
from apps.campaigns.jobs.models import Job
from apps.campaigns.jobs.progress import attempt_over
from apps.campaigns.jobs.waiting import ON_DEVICE, due
from apps.core.errors import Invalid, LeaseLost
from apps.core.leases import NO_OWNER, this_process
from apps.core.transitions import transition
from apps.kernels.models import Kernel, Verdict
from apps.kernels.verdicts import verdict_columns, verdict_store
from apps.teams.models import Team

LEASE_SECONDS = 30
INFRA_ERROR = "infra_error"


def job_enqueue(
    *, purpose: str, request: dict[str, Any], team: Team | None, kernel: Kernel, campaign: Any = None,
    round: Any = None, job_id: uuid.UUID | None = None,
) -> Job:
    """Put an evaluation into the queue. ``request["job"]`` must be the id, so give ``job_id`` when you made one.

    Raises:
        Invalid: the request breaks its schema or is about another kernel.
    """
    key = job_id or uuid.UUID(request["job"])
    try:
        document = api.request_check(request)
    except api.BridgeError as error:
        raise Invalid(error.text, key=error.key, code=error.code) from error
    if uuid.UUID(document["job"]) != key or document["purpose"] != purpose:
        raise Invalid("The request names another job or purpose than the row.", key="job")
    if document["candidate"]["digest"] != kernel.digest:
        raise Invalid("The request is about another kernel than the row.", key="candidate.digest")
    return Job.objects.create(
        id=key, purpose=purpose, request=document, team=team, kernel=kernel, campaign=campaign, round=round,
        hardware=document["hardware"], backend=document["backend"], priority=PRIORITIES[JobPurpose(purpose)],
    )


def job_lease(*, hardware: str | None, backends: list[str], seconds: float = LEASE_SECONDS) -> Job | None:
    """Take the most urgent job that this worker can do; ``hardware`` ``None`` takes any of the backends.

    One guarded UPDATE decides races: who loses tries the next job.
    """
    fits = Q(backend__in=backends)
    if hardware is not None:
        # A Triton kernel whose device nobody has is judged by the interpreter: a dry run needs no device. What only
        # the device can answer waits for it.
        dry = Q(backend="triton") & ~Q(hardware__in=devices_served()) & ~Q(purpose__in=ON_DEVICE)
        fits &= Q(hardware=hardware) | dry
    me = this_process()
    for pk, fence in due().filter(fits).order_by("-priority", "created_at").values_list("pk", "fence")[:20]:
        now = timezone.now()
        taken = Job.objects.filter(pk=pk, state=JobState.QUEUED, fence=fence).update(
            state=JobState.LEASED, version=F("version") + 1, fence=F("fence") + 1, owner_host=me.host,
            owner_boot=me.boot, owner_pid=me.pid, owner_start=me.start,
            lease_expires_at=now + timedelta(seconds=seconds), started_at=now, progress={}, stages=[],
        )
        if taken:
            return Job.objects.select_related("campaign", "team", "kernel", "round").get(pk=pk)
    return None


def _held(job_id: uuid.UUID, fence: int) -> Any:
    return Job.objects.filter(pk=job_id, fence=fence, state=JobState.LEASED)


def _lost(job_id: uuid.UUID) -> LeaseLost:
    state = Job.objects.filter(pk=job_id).values_list("state", flat=True).first()
    return LeaseLost(f"Job {str(job_id)[:8]} is '{state}' and not held with this token any more. Stop working on it; "
                     "nothing was recorded.")


def job_heartbeat(*, job_id: uuid.UUID, fence: int, seconds: float = LEASE_SECONDS) -> None:
    """Keep the lease alive.

    Raises:
        LeaseLost: expired and taken over, or cancelled: end the evaluation.
    """
    if not _held(job_id, fence).update(lease_expires_at=timezone.now() + timedelta(seconds=seconds)):
        raise _lost(job_id)


def job_progress(*, job_id: uuid.UUID, fence: int, stage: str, done: int, total: int, text: str = "") -> None:
    """Note how far the evaluation is; keeps the start of each stage, so that the page shows a clock per stage.

    Raises:
        LeaseLost: as in ``job_heartbeat``.
    """
    now = timezone.now()
    held = _held(job_id, fence)
    stages = held.values_list("stages", flat=True).first()
    if stages is None:
        raise _lost(job_id)
    stamp = now.isoformat()
    if not stages or stages[-1]["stage"] != stage:
        if stages:
            stages[-1]["ended_at"] = stamp
        stages.append({"stage": stage, "started_at": stamp, "ended_at": None})
    frame = {"stage": stage, "done": done, "total": total, "text": text, "since": stages[-1]["started_at"]}
    if not held.update(progress=frame, stages=stages, lease_expires_at=now + timedelta(seconds=LEASE_SECONDS)):
        raise _lost(job_id)


def job_complete(*, job_id: uuid.UUID, fence: int, document: dict[str, Any], samples: bytes | None) -> Verdict:
    """Record the verdict and end the job, in one transaction: never one without the other, never twice.

    Raises:
        LeaseLost: the token is not the present one; nothing was recorded.
        Invalid: the document is no verdict on this job's kernel, or does not follow from its samples.
    """
    job = _held(job_id, fence).select_related("kernel", "team").first()
    if job is None:
        raise _lost(job_id)
    _check_against_request(job, document)
    columns = verdict_columns(document, samples)  # a second of processor time: before the transaction, not in it
    with transaction.atomic():
        job = _held(job_id, fence).select_for_update(of=("self",)).select_related("kernel", "team").first()
        if job is None:
            raise _lost(job_id)
        verdict = verdict_store(
            kernel=job.kernel, team=job.team, purpose=job.purpose, workload=job.request["workload"],
            goal_digest=api.digest_document(job.request["goal"]),
            against={side["role"]: side["digest"] for side in job.request["against"]},
            document=document, columns=columns, samples=samples, job_key=job.pk,
        )
        transition(job, JOB_MACHINE, JobState.SUCCEEDED, verdict=verdict, ended_at=timezone.now(), stages=_closed(job),
                   **NO_OWNER)
    if verdict.outcome == INFRA_ERROR:
        attempt_over(job)  # the round is measured anew
    return verdict


def _closed(job: Job) -> list[dict[str, Any]]:
    """The stages with the last one ended."""
    stages = list(job.stages)
    if stages:
        stages[-1]["ended_at"] = timezone.now().isoformat()
    return stages


def _check_against_request(job: Job, document: dict[str, Any]) -> None:
    """The verdict must answer the question that was asked: same kernel, operator, backend and device."""
    asked = job.request
    for key, mine, theirs in (
        ("kernel", asked["candidate"]["digest"], document.get("kernel")),
        ("operator", asked["operator"], document.get("operator")),
        ("backend", asked["backend"], document.get("backend")),
    ):
        if mine != theirs:
            raise Invalid(f"The job asked about {key} {mine}, the verdict is about {theirs}. Not recorded.", key=key)
    hardware = document.get("hardware")
    if hardware != asked["hardware"] and document.get("timing") is not None:
        raise Invalid(f"The job asked for figures of {asked['hardware']}, the verdict has those of {hardware}. Not "
                      "recorded: figures of different devices are never mixed.", key="hardware")


def job_fail(*, job_id: uuid.UUID, fence: int, error: str, retry: bool = True) -> Job:
    """The evaluation broke (not the candidate). Back to the queue with attempt + 1, ``errored`` after the third.

    Raises:
        LeaseLost: the token is not the present one.
    """
    with transaction.atomic():
        job = _held(job_id, fence).select_for_update().first()
        if job is None:
            raise _lost(job_id)
        ended = _give_up_or_requeue(job, error, retry)
    attempt_over(ended)
    return ended


def _give_up_or_requeue(job: Job, error: str, retry: bool = True) -> Job:
    if retry and job.attempt < JOB_ATTEMPTS:
        return transition(job, JOB_MACHINE, JobState.QUEUED, attempt=F("attempt") + 1, error=error, **NO_OWNER)
    return transition(job, JOB_MACHINE, JobState.ERRORED, error=error, ended_at=timezone.now(), **NO_OWNER)


def jobs_reap() -> list[Job]:
    """Take back jobs whose lease expired or whose owner is dead on this host; returns the jobs touched."""
    now = timezone.now()
    touched: list[Job] = []
    for job in Job.objects.filter(state=JobState.LEASED):
        owner = job.owner()
        dead = owner is not None and owner.alive() is False
        if not dead and job.lease_expires_at is not None and job.lease_expires_at > now:
            continue
        why = "The worker died" if dead else "The worker stopped reporting"
        with transaction.atomic():
            fresh = _held(job.pk, job.fence).select_for_update().first()
            if fresh is not None and (dead or fresh.lease_expires_at <= now):
                touched.append(_give_up_or_requeue(fresh, f"{why} in attempt {fresh.attempt}."))
    for job in touched:
        attempt_over(job)
    return touched


def job_cancel(*, job: Job, reason: str) -> None:
    """Cancel a job that waits or runs; its holder notices at the next heartbeat. Ended jobs stay as they are."""
    Job.objects.filter(pk=job.pk, state__in=JOB_OPEN).update(
        state=JobState.CANCELLED, version=F("version") + 1, error=reason, ended_at=timezone.now(), **NO_OWNER
    )


def jobs_cancel_of(campaign: Any) -> None:
    """Cancel what a campaign still has in the queue or on a device, re-verifications of reviews excepted."""
    for job in Job.objects.filter(campaign=campaign, state__in=JOB_OPEN).exclude(purpose="promotion"):
        job_cancel(job=job, reason="The campaign ended.")
