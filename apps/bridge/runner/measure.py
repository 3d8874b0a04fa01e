"""Jobs of a campaign: one per round and attempt, and one fresh paired measurement before its review."""

from __future__ import annotations

import secrets
import uuid
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.bridge.runner.demo.names import is_background
from apps.campaigns.choices import JOB_OPEN, PRIORITIES, JobPurpose
from apps.campaigns.jobs.devices import is_dry
from apps.campaigns.jobs.models import Job
from apps.campaigns.jobs.selectors import workers
from apps.campaigns.jobs.services import job_enqueue
from apps.campaigns.models import Campaign, EngineResult, Round
from apps.kernels.models import Champion, Kernel
from harness.domain.codec import to_document
from harness.domain.request import EvaluationRequest, SourceRef
from harness.engine import actions
from harness.engine.requests import final_request, request_of

NAMESPACE = uuid.UUID("6a3a5f0e-6f6e-4a57-9d5c-2f2f5f0f4a11")
OUTAGE_AFTER_S = 60.0
BACKGROUND = 5
"""How much less urgent the jobs of the demo's own campaigns are than those of people."""


def round_job(*, campaign: Campaign, state: Any, action: actions.EvaluateBaseline | actions.Evaluate) -> Job:
    """The job of this round and attempt, enqueued when it does not exist yet."""
    number = action.round if isinstance(action, actions.Evaluate) else 0
    row = Round.objects.get(campaign=campaign, number=number)
    kernel = campaign.start_kernel if number == 0 else row.kernel
    assert kernel is not None
    key = uuid.uuid5(NAMESPACE, f"{campaign.pk}:{number}:{_faults(campaign, number)}:{kernel.digest}")
    return _job(key, campaign, row, kernel, request_of(state, action, job=str(key), nonce=secrets.token_hex(16)))


def final_job(*, campaign: Campaign, state: Any) -> Job:
    """R19: the final kernel against round 0 and the champion of this moment, measured once for each pair; anew where
    the measurement was cancelled because the campaign ended under it."""
    champion = Champion.objects.select_related("kernel").filter(slot=campaign.slot).first()
    side = SourceRef(champion.kernel.digest, champion.kernel.text) if champion else None
    kernel = Kernel.objects.get(pk=state.incumbent.kernel.digest)
    cancelled = Job.objects.filter(campaign=campaign, kernel=kernel, purpose="probe", state="cancelled").count()
    against = side.digest if side else "none"
    key = uuid.uuid5(NAMESPACE, f"{campaign.pk}:final:{kernel.digest}:{against}:{cancelled}")
    request = final_request(state, job=str(key), nonce=secrets.token_hex(16), champion=side)
    return _job(key, campaign, None, kernel, request)


def _job(key: uuid.UUID, campaign: Campaign, row: Round | None, kernel: Kernel, request: EvaluationRequest) -> Job:
    found = Job.objects.select_related("verdict").filter(pk=key).first()
    if found is not None:
        return found
    try:
        with transaction.atomic():
            job = job_enqueue(purpose=str(request.purpose), request=to_document(request), team=campaign.team,
                              kernel=kernel, campaign=campaign, round=row, job_id=key)
            if is_background(campaign):
                Job.objects.filter(pk=key).update(priority=PRIORITIES[JobPurpose.ROUND] - BACKGROUND)
    except IntegrityError:
        return Job.objects.select_related("verdict").get(pk=key)
    return job


def _faults(campaign: Campaign, number: int) -> int:
    """How often the evaluator itself failed in this round so far: what tells one attempt's job from the next."""
    told = EngineResult.objects.filter(
        campaign=campaign, kind__in=("InfrastructureFault", "Evaluated", "BaselineMeasured")
    ).values_list("kind", "document")
    return sum(1 for kind, document in told if document["data"].get("round", 0) == number and (
        kind == "InfrastructureFault" or document["data"]["verdict"]["outcome"] == "infra_error"))


def is_open(job: Job) -> bool:
    """Whether the job still waits or runs."""
    return job.state in JOB_OPEN


def outage(job: Job) -> str | None:
    """A sentence when a job has waited for a minute and no worker for its device is there."""
    if job.state != "queued" or timezone.now() - job.created_at < timedelta(seconds=OUTAGE_AFTER_S):
        return None
    if any(status.up and _fits(status.worker, job) for status in workers()):
        return None
    return (f"No evaluation worker for {job.hardware} ({job.backend}) has reported for a minute. The job keeps its "
            "place in the queue; start the worker (`manage.py serve` does), then resume.")


def _fits(worker: Any, job: Job) -> bool:
    return worker.kind == "evalworker" and job.backend in worker.backends and (
        worker.hardware == job.hardware or is_dry(job.hardware, job.backend))
