"""Frozen baselines, their readings, and the times in which a device drifted."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

USER = settings.AUTH_USER_MODEL


class CanaryBase(models.Model):
    """The kernel that watches one device for one operator and backend. A new one begins where it is re-based."""

    operator = models.ForeignKey("kernels.Operator", on_delete=models.PROTECT, related_name="+")
    backend = models.CharField(max_length=16)
    hardware = models.CharField(max_length=100)
    workload = models.CharField(max_length=64)
    kernel = models.ForeignKey("kernels.Kernel", on_delete=models.PROTECT, related_name="+")
    begun_at = models.DateTimeField()
    by = models.ForeignKey(USER, on_delete=models.PROTECT, null=True, related_name="+")  # null: by system
    reason = models.TextField()
    ended_at = models.DateTimeField(null=True)
    job = models.OneToOneField("campaigns.Job", on_delete=models.PROTECT, null=True, related_name="canary")
    ordered_at = models.DateTimeField(null=True)  # of the newest job, ended ones included

    class Meta:
        ordering = ["hardware", "operator_id", "backend", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["operator", "backend", "hardware"], condition=Q(ended_at__isnull=True), name="canary_one_base"
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="canary_base_reason_given"),
        ]

    def __str__(self) -> str:
        return f"{self.operator} / {self.backend} on {self.hardware}"


class CanaryReading(models.Model):
    """One timing of a frozen baseline. ``side`` and ``shift`` are empty while there is no reference to judge by."""

    base = models.ForeignKey(CanaryBase, on_delete=models.PROTECT, related_name="readings")
    verdict = models.OneToOneField("kernels.Verdict", on_delete=models.PROTECT, related_name="canary_reading")
    environment_class = models.CharField(max_length=255)
    outcome = models.CharField(max_length=32)
    medians = models.JSONField(default=dict)  # microseconds by shape; empty where the baseline did not pass
    weights = models.JSONField(default=dict)
    noise = models.FloatField(null=True)
    shift = models.FloatField(null=True)
    margin = models.FloatField(null=True)
    side = models.SmallIntegerField(null=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"reading of {self.base} at {self.at:%Y-%m-%d %H:%M}"


class CanaryDrift(models.Model):
    """A time in which a device drifted: promotions on it waited, figures of it are in doubt.

    ``since`` is the last reading that was still within: what was measured after it is in doubt too.
    """

    base = models.ForeignKey(CanaryBase, on_delete=models.PROTECT, related_name="drifts")
    hardware = models.CharField(max_length=100, db_index=True)
    environment_class = models.CharField(max_length=255)
    since = models.DateTimeField()
    opened_at = models.DateTimeField()
    text = models.TextField()
    ended_at = models.DateTimeField(null=True)
    ended_because = models.TextField(blank=True, default="")
    ended_by = models.ForeignKey(USER, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["base"], condition=Q(ended_at__isnull=True), name="canary_one_open_drift"),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True) | ~Q(ended_because=""), name="canary_drift_end_explained"
            ),
        ]

    def __str__(self) -> str:
        return f"drift of {self.hardware} since {self.since:%Y-%m-%d %H:%M}"
