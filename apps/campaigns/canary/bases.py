"""Which frozen kernel watches a device, and when another one takes over."""

from __future__ import annotations

from django.utils import timezone

from apps.bridge import api
from apps.campaigns.canary.models import CanaryBase, CanaryDrift
from apps.campaigns.canary.readings import drift_end
from apps.campaigns.jobs.workers import team_streams
from apps.kernels.models import Operator
from apps.kernels.services import baseline_kernel
from apps.stream.services import Log, recording
from apps.teams.models import User


def base_of(operator: Operator, backend: str, hardware: str) -> CanaryBase:
    """The base that watches now; a new one where there is none, or where another baseline ships by now."""
    kernel = baseline_kernel(operator=operator, backend=backend)
    row = CanaryBase.objects.filter(
        operator=operator, backend=backend, hardware=hardware, ended_at__isnull=True).first()
    if row is not None and row.kernel_id == kernel.pk:
        return row
    with recording(*team_streams()) as log:
        why = "The shipped baseline changed." if row is not None else "The operator is in use on this device."
        if row is not None:
            base_finish(row, why, log)
        return base_begin(operator, backend, hardware, why)


def base_begin(operator: Operator, backend: str, hardware: str, reason: str, by: User | None = None) -> CanaryBase:
    """A new base of the baseline that ships now, on the first workload that the backend has."""
    workload = next(w.name for w in api.operator(operator.name).workloads if backend in w.shapes)
    return CanaryBase.objects.create(
        operator=operator, backend=backend, hardware=hardware, workload=workload,
        kernel=baseline_kernel(operator=operator, backend=backend), begun_at=timezone.now(), by=by, reason=reason)


def base_finish(base: CanaryBase, because: str, log: Log, by: User | None = None) -> None:
    """End a base, and its drift with it."""
    CanaryBase.objects.filter(pk=base.pk).update(ended_at=timezone.now())
    for row in CanaryDrift.objects.filter(base=base, ended_at__isnull=True):
        drift_end(row, because, log, by)
