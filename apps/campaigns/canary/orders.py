"""Ordering readings."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.bridge import api
from apps.campaigns.canary.bases import base_of
from apps.campaigns.canary.due import Order, Situation, due
from apps.campaigns.canary.models import CanaryBase, CanaryDrift
from apps.campaigns.choices import JOB_OPEN, PRIORITIES, CampaignState, JobPurpose, JobState
from apps.campaigns.jobs.models import Job, Worker
from apps.campaigns.jobs.services import job_enqueue
from apps.campaigns.models import Campaign
from apps.kernels.choices import SlotState
from apps.kernels.models import Operator, Slot, Verdict

IDLE_AFTER = timedelta(seconds=30)


def order_due(worker: Worker) -> None:
    """Put into the queue what is due on the worker's device."""
    idle = _idle()
    for operator, backend in _in_use(worker):
        base = base_of(operator, backend, worker.hardware)
        order = due(_situation(base, worker, idle))
        if order is None:
            continue
        if base.job_id is None:
            _order(base, order)
        elif order.urgent:
            _hasten(base.job_id)


def _hasten(job_id: uuid.UUID) -> None:
    """What was ordered for an idle device became urgent while it waited: it takes its turn among rounds."""
    urgent = PRIORITIES[JobPurpose.ROUND]
    Job.objects.filter(pk=job_id, state=JobState.QUEUED, priority__lt=urgent).update(priority=urgent)


def _in_use(worker: Worker) -> list[tuple[Operator, str]]:
    """Operators and backends that somebody works on or serves on the worker's device."""
    slots = Slot.objects.filter(
        Q(campaigns__isnull=False) | ~Q(state=SlotState.EMPTY), hardware__name=worker.hardware,
        backend__in=worker.backends, operator__active=True,
    ).select_related("operator").order_by("operator__name", "backend").distinct()
    return list(dict.fromkeys((slot.operator, slot.backend) for slot in slots))


def _situation(base: CanaryBase, worker: Worker, idle: bool) -> Situation:
    now = timezone.now()
    last = base.readings.order_by("-id").first()
    made = Verdict.objects.filter(hardware=base.hardware, kernel__backend=base.backend, foreign=False)
    made = made.exclude(purpose=JobPurpose.CANARY)
    made = made.filter(pk__gt=last.verdict_id) if last is not None else made.filter(created_at__gte=base.begun_at)
    open_ = CanaryDrift.objects.filter(base=base, ended_at__isnull=True).exists()
    ordered = base.ordered_at
    if ordered is not None and ordered > now:
        ordered = None  # the clock was set back; an order of the future must not silence the canary until then
    here = base.readings.filter(environment_class=last.environment_class).count() if last is not None else 0
    return Situation(
        every=settings.CANARY_EVERY, readings=here, evaluations=made.count(),
        suspect=not open_ and last is not None and last.side not in (None, 0), drifting=open_,
        restarted=ordered is None or worker.started_at > ordered, idle=idle,
        since_order_s=(now - ordered).total_seconds() if ordered is not None else None)


def _idle() -> bool:
    """Nobody uses the devices and nobody did a moment ago."""
    busy = Campaign.objects.filter(state=CampaignState.RUNNING).exists() or Job.objects.filter(
        state__in=JOB_OPEN).exists()
    return not busy and not Job.objects.filter(ended_at__gte=timezone.now() - IDLE_AFTER).exists()


def _order(base: CanaryBase, order: Order) -> None:
    key = uuid.uuid4()
    document = api.verification_request(
        job=str(key), goal=api.goal_default(base.operator.name, base.backend, base.hardware, base.workload),
        operator_version=api.operator(base.operator.name).version, candidate=bytes(base.kernel.source), against={},
        purpose=JobPurpose.CANARY, isolation=settings.REQUIRED_ISOLATION)
    with transaction.atomic():
        job = job_enqueue(purpose=JobPurpose.CANARY, request=document, team=None, kernel=base.kernel, job_id=key)
        if order.urgent:
            Job.objects.filter(pk=job.pk).update(priority=PRIORITIES[JobPurpose.ROUND])
        if not CanaryBase.objects.filter(pk=base.pk, job__isnull=True, ended_at__isnull=True).update(
                job=job, ordered_at=timezone.now()):
            transaction.set_rollback(True)  # another engine was first, or a new reference began
