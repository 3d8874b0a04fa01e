"""One row per turn of a language model; the document is ``harness.domain.turn.Turn``."""

from __future__ import annotations

import json
from typing import Any

from django.db import models
from django.db.models import Q

from apps.campaigns.choices import TurnState


class AgentTurn(models.Model):
    """One question to a model and its answer. Written ``open`` before anything is sent and once more when it is over.

    The name is (round, attempt, sample, number) and the digest of everything that was sent: another question under
    the same numbers (a person steered the campaign in between) is another row, so that nothing paid ever disappears.
    Columns are for lists and sums; pages show ``document``.
    """

    campaign = models.ForeignKey("campaigns.Campaign", on_delete=models.PROTECT, related_name="turns")
    round_number = models.PositiveIntegerField()
    attempt = models.PositiveSmallIntegerField()  # which asking of the round
    sample = models.PositiveSmallIntegerField(default=0)  # which candidate of one asking
    number = models.PositiveSmallIntegerField()  # which turn of one conversation
    request_digest = models.CharField(max_length=71)
    status = models.CharField(max_length=12, choices=TurnState.choices)
    endpoint = models.CharField(max_length=100, blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")
    tokens_in = models.PositiveBigIntegerField(default=0)
    tokens_out = models.PositiveBigIntegerField(default=0)
    cost = models.FloatField(null=True)  # null: the endpoint has no price
    currency = models.CharField(max_length=8, blank=True, default="")
    latency_s = models.FloatField(default=0.0)
    finish = models.CharField(max_length=64, blank=True, default="")
    blame = models.CharField(max_length=16, blank=True, default="")
    error = models.TextField(blank=True, default="")
    text = models.TextField()  # the document as ASCII JSON: a model may write NULs, which no JSON column takes
    at = models.DateTimeField()

    class Meta:
        ordering = ["campaign_id", "round_number", "attempt", "sample", "number", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["campaign", "round_number", "attempt", "sample", "number", "request_digest"],
                name="agent_turn_once"),
            models.CheckConstraint(condition=Q(status__in=TurnState.values), name="agent_turn_status_known"),
        ]

    def __str__(self) -> str:
        return f"{self.campaign} round {self.round_number} turn {self.attempt}.{self.sample}.{self.number}"

    @property
    def document(self) -> dict[str, Any]:
        """The whole turn."""
        return json.loads(self.text)
