"""Which devices have an evaluation worker of their own."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from apps.campaigns.jobs.models import Worker

REMEMBERED = timedelta(hours=24)
"""A worker that is down for less than this is waited for: its jobs do not turn into dry runs meanwhile."""


def devices_served() -> list[str]:
    """Names of devices whose worker reported lately, whether it is up now or not."""
    rows = Worker.objects.filter(kind="evalworker", beat_at__gte=timezone.now() - REMEMBERED)
    return sorted(set(rows.exclude(hardware="").values_list("hardware", flat=True)))


def is_dry(hardware: str, backend: str) -> bool:
    """Whether kernels for this device can only be judged without it: Triton where no worker has the device."""
    return backend == "triton" and hardware not in devices_served()
