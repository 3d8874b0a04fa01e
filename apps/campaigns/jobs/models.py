"""Jobs, workers and self-tests."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from apps.campaigns.choices import JobPurpose, JobState, SelfTestState
from apps.core.leases import Leased


class Job(Leased):
    """One evaluation to do. The row is the truth; nudges carry only its id."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey("teams.Team", on_delete=models.PROTECT, null=True, related_name="jobs")
    campaign = models.ForeignKey("campaigns.Campaign", on_delete=models.PROTECT, null=True, related_name="jobs")
    round = models.ForeignKey("campaigns.Round", on_delete=models.PROTECT, null=True, related_name="jobs")
    kernel = models.ForeignKey("kernels.Kernel", on_delete=models.PROTECT, null=True, related_name="+")
    purpose = models.CharField(max_length=12, choices=JobPurpose.choices)
    hardware = models.CharField(max_length=100)
    backend = models.CharField(max_length=16)
    state = models.CharField(max_length=12, choices=JobState.choices, default=JobState.QUEUED)
    version = models.PositiveIntegerField(default=1)
    priority = models.PositiveSmallIntegerField()
    attempt = models.PositiveSmallIntegerField(default=1)
    request = models.JSONField()  # the evaluation request document
    progress = models.JSONField(default=dict)  # {"stage", "done", "total", "text", "since"}
    stages = models.JSONField(default=list)  # [{"stage", "started_at", "ended_at"}], the stepper's own clocks
    verdict = models.OneToOneField("kernels.Verdict", on_delete=models.PROTECT, null=True, related_name="job")
    error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-priority", "created_at"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=JobState.values), name="job_state_known"),
            models.CheckConstraint(condition=Q(attempt__gte=1, attempt__lte=3), name="job_attempts_bounded"),
        ]
        indexes = [models.Index(fields=["state", "hardware", "backend", "-priority"])]

    def __str__(self) -> str:
        return f"{self.purpose} job {str(self.id)[:8]}"


class Worker(Leased):
    """A process of this installation (``web``, ``engine``, ``evalworker``) as it last reported itself."""

    name = models.CharField(max_length=100, unique=True)  # "engine", "evalworker:cpu-amd-epyc-1t"
    kind = models.CharField(max_length=16)
    hardware = models.CharField(max_length=100, blank=True, default="")
    backends = models.JSONField(default=list)
    isolation = models.PositiveSmallIntegerField(null=True)
    proved = models.JSONField(default=list)
    environment = models.JSONField(default=dict)
    evaluator_version = models.CharField(max_length=32, blank=True, default="")
    draining = models.BooleanField(default=False)
    note = models.TextField(blank=True, default="")
    started_at = models.DateTimeField()
    beat_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class SelfTest(models.Model):
    """One pass of the evaluator over known cheats, wrong kernels and honest look-alikes."""

    evaluator_version = models.CharField(max_length=32)
    environment_class = models.CharField(max_length=255)
    isolation = models.PositiveSmallIntegerField()
    backend = models.CharField(max_length=16, blank=True, default="")
    quick = models.BooleanField(default=True)
    state = models.CharField(max_length=8, choices=SelfTestState.choices)
    report = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [models.CheckConstraint(condition=Q(state__in=SelfTestState.values), name="selftest_state_known")]

    def __str__(self) -> str:
        return f"self-test {self.state} at {self.at:%Y-%m-%d %H:%M}"


class SelfTestOrder(models.Model):
    """A maintainer asks for the self-test of a device now; done with the pass that answers it."""

    hardware = models.CharField(max_length=100)
    quick = models.BooleanField(default=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()
    test = models.ForeignKey(SelfTest, on_delete=models.PROTECT, null=True, related_name="orders")

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"self-test of {self.hardware} ordered by {self.by}"
