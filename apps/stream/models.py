"""The event log: durable, gapless, ordered per stream; and the last ephemeral frame per stream."""

from __future__ import annotations

from django.db import models


class Stream(models.Model):
    """``campaign:<id>`` or ``team:<id>``. ``last_seq`` is raised by the first statement of each writing transaction."""

    name = models.CharField(max_length=64, primary_key=True)
    last_seq = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return self.name


class Event(models.Model):
    """One durable event; the document is ``harness.domain.event``."""

    stream = models.ForeignKey(Stream, on_delete=models.PROTECT, related_name="events")
    seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=32)
    v = models.PositiveSmallIntegerField(default=1)
    at = models.DateTimeField()
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ["stream_id", "seq"]
        constraints = [models.UniqueConstraint(fields=["stream", "seq"], name="event_seq_once")]

    def __str__(self) -> str:
        return f"{self.stream_id} {self.seq} {self.kind}"


class Progress(models.Model):
    """The last ephemeral frame of one kind (``progress``, ``tokens``, ``beat``); overwritten, may be lost."""

    stream = models.CharField(max_length=64)
    kind = models.CharField(max_length=16)
    n = models.PositiveBigIntegerField(default=0)  # raised with every frame, so that a reader sees a change
    at = models.DateTimeField()
    data = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "progress"
        constraints = [models.UniqueConstraint(fields=["stream", "kind"], name="progress_frame_once")]

    def __str__(self) -> str:
        return f"{self.stream} {self.kind}"
