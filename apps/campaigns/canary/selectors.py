"""Reading the canary: open drifts, drift windows of a device, readings for pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from apps.campaigns.canary.models import CanaryBase, CanaryDrift, CanaryReading


@dataclass(frozen=True, slots=True)
class Window:
    """A time in which figures of a device are in doubt; ``end`` is ``None`` while it lasts."""

    start: datetime
    end: datetime | None

    def holds(self, at: datetime) -> bool:
        """Whether a figure of this moment is in doubt."""
        return at > self.start and (self.end is None or at <= self.end)


def open_drifts() -> list[CanaryDrift]:
    """Drifts that last, by device."""
    rows = CanaryDrift.objects.filter(ended_at__isnull=True).select_related("base__operator")
    return list(rows.order_by("hardware", "id"))


def drift_gap(hardware: str) -> str | None:
    """Why promotions on a device wait for its canary; ``None`` while it is steady."""
    row = CanaryDrift.objects.filter(hardware=hardware, ended_at__isnull=True).order_by("id").first()
    return row.text if row is not None else None


def drift_windows(hardware: str) -> list[Window]:
    """Times in which a device drifted, oldest first."""
    rows = CanaryDrift.objects.filter(hardware=hardware).order_by("since").values_list("since", "ended_at")
    return [Window(since, ended) for since, ended in rows]


def in_doubt(windows: list[Window], at: datetime | None) -> bool:
    """Whether a figure of this moment was taken while the device drifted."""
    return at is not None and any(window.holds(at) for window in windows)


def bases() -> QuerySet[CanaryBase]:
    """Baselines that watch a device now."""
    return CanaryBase.objects.filter(ended_at__isnull=True).select_related("operator", "kernel", "by")


def readings_of(base: CanaryBase, limit: int = 60) -> list[CanaryReading]:
    """The newest readings of a base, oldest first."""
    return list(base.readings.order_by("-id")[:limit])[::-1]
