"""Reports that were made elsewhere, as they came. Append-only; nothing here is evidence for a promotion."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from apps.kernels.models import DIGEST


class ImportedReport(models.Model):
    """One report file: where and when it was measured, with what. ``header`` is its document without the operators."""

    digest = models.CharField(max_length=DIGEST, unique=True)  # of the canonical JSON: a report is imported once
    file = models.CharField(max_length=200)
    backend = models.CharField(max_length=16)
    hardware = models.CharField(max_length=100)
    workload = models.CharField(max_length=64)
    environment_class = models.CharField(max_length=255)
    evaluator_version = models.CharField(max_length=32)
    header = models.JSONField()
    measured_at = models.DateTimeField()
    imported_at = models.DateTimeField()
    imported_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        ordering = ["-measured_at", "-id"]

    def __str__(self) -> str:
        return f"I-{self.pk}"


class ImportedBoard(models.Model):
    """One operator of a report: rows of libraries and kernels, campaigns. Sources and verdicts have their own rows."""

    report = models.ForeignKey(ImportedReport, on_delete=models.PROTECT, related_name="boards")
    operator = models.ForeignKey("kernels.Operator", on_delete=models.PROTECT, related_name="imported_boards")
    place = models.PositiveSmallIntegerField()
    document = models.JSONField()

    class Meta:
        ordering = ["report_id", "place"]
        constraints = [models.UniqueConstraint(fields=["report", "operator"], name="imported_board_once")]

    def __str__(self) -> str:
        return f"{self.operator} of {self.report}"


class ImportedKernel(models.Model):
    """A kernel that came with a report. Boards show those with a name; ``tier`` is against the report's baseline and
    computed here from the bytes. ``verdict`` is foreign and belongs to no team."""

    board = models.ForeignKey(ImportedBoard, on_delete=models.PROTECT, related_name="kernels")
    kernel = models.ForeignKey("kernels.Kernel", on_delete=models.PROTECT, related_name="imported")
    verdict = models.OneToOneField("kernels.Verdict", on_delete=models.PROTECT, null=True, related_name="imported")
    name = models.CharField(max_length=64, blank=True, default="")
    agent = models.CharField(max_length=64, blank=True, default="")
    round = models.PositiveIntegerField(default=0)
    tier = models.CharField(max_length=8, blank=True, default="")

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["board", "kernel", "name"], name="imported_kernel_once")]

    def __str__(self) -> str:
        return f"{self.name or 'kernel'} of {self.board}"
