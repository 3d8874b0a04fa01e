"""Campaigns, rounds, hypotheses and engine results. Engine state is a fold over ``EngineResult`` rows."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from apps.campaigns.canary.models import CanaryBase, CanaryDrift, CanaryReading
from apps.campaigns.choices import CampaignState, HypothesisState, RoundState
from apps.campaigns.jobs.models import Job, SelfTest, SelfTestOrder, Worker
from apps.campaigns.turns.models import AgentTurn
from apps.core.leases import Leased

USER = settings.AUTH_USER_MODEL


class Campaign(Leased):
    """One optimisation run for a slot: goal x agent x grant. The goal is frozen at start; the engine leases it."""

    team = models.ForeignKey("teams.Team", on_delete=models.PROTECT, related_name="campaigns")
    slot = models.ForeignKey("kernels.Slot", on_delete=models.PROTECT, related_name="campaigns")
    name = models.CharField(max_length=120)
    state = models.CharField(max_length=12, choices=CampaignState.choices, default=CampaignState.DRAFT)
    version = models.PositiveIntegerField(default=1)
    goal = models.JSONField()
    goal_digest = models.CharField(max_length=71)
    grant = models.CharField(max_length=8)
    operator_version = models.CharField(max_length=32)
    agent_kind = models.CharField(max_length=16)
    started_by = models.ForeignKey(USER, on_delete=models.PROTECT, related_name="campaigns")
    fork_of = models.ForeignKey("self", on_delete=models.PROTECT, null=True, blank=True, related_name="forks")
    start_kernel = models.ForeignKey("kernels.Kernel", on_delete=models.PROTECT, null=True, related_name="+")
    incumbent = models.ForeignKey("kernels.Kernel", on_delete=models.PROTECT, null=True, related_name="+")
    incumbent_verdict = models.ForeignKey("kernels.Verdict", on_delete=models.PROTECT, null=True, related_name="+")
    cause_code = models.CharField(max_length=32, blank=True, default="")  # why paused, on plateau, ended
    cause = models.TextField(blank=True, default="")  # the sentence
    options = models.JSONField(default=list)  # on plateau: what a person may choose
    dry_run = models.BooleanField(default=False)  # Triton without a GPU: exports request files
    imported_from = models.TextField(blank=True, default="")  # a marked export of a real run elsewhere
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    state_since = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    active_seconds = models.FloatField(default=0.0)  # time spent running, pauses left out
    tokens_used = models.PositiveBigIntegerField(default=0)
    turns_used = models.PositiveIntegerField(default=0)
    money_used = models.FloatField(default=0.0)
    currency = models.CharField(max_length=8, blank=True, default="")  # of the endpoint's prices, once something cost
    budget = models.JSONField(null=True)  # what may be spent after a person raised it; null: as the goal says
    agent = models.JSONField(null=True)  # the choice of agent after a person changed the model; null: as the goal says
    forbidden = models.JSONField(default=list)  # [{"direction", "person"}]
    steering = models.JSONField(default=list)  # what people asked of the agent, oldest first; ``domain.steering.Steer``
    queued = models.PositiveSmallIntegerField(default=0)  # alternatives of an earlier asking that wait for their round

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=CampaignState.values), name="campaign_state_known"),
            models.CheckConstraint(condition=Q(grant__in=["light", "medium", "heavy"]), name="campaign_grant_known"),
        ]
        indexes = [models.Index(fields=["team", "state"])]

    def __str__(self) -> str:
        return f"C-{self.pk}"

    @property
    def stream(self) -> str:
        """Name of the campaign's event stream."""
        return f"campaign:{self.pk}"


class Round(models.Model):
    """One iteration: hypothesis, change, verdict, conclusion. Round 0 is the baseline."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="rounds")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=12, choices=RoundState.choices, default=RoundState.THINKING)
    version = models.PositiveIntegerField(default=1)
    hypothesis_key = models.CharField(max_length=32, blank=True, default="")
    hypothesis = models.TextField(blank=True, default="")
    direction = models.CharField(max_length=128, blank=True, default="")  # "<direction>:<kernel function>"
    expected_gain = models.FloatField(null=True)
    change_summary = models.TextField(blank=True, default="")
    proposal = models.JSONField(null=True)  # without source; the kernel holds it
    trace = models.JSONField(null=True)  # the agent's turns, shown and never interpreted
    bounces = models.JSONField(default=list)  # proposals sent back inside this round, with the sentence
    kernel = models.ForeignKey("kernels.Kernel", on_delete=models.PROTECT, null=True, related_name="rounds")
    base = models.ForeignKey("kernels.Kernel", on_delete=models.PROTECT, null=True, related_name="+")
    verdict = models.ForeignKey("kernels.Verdict", on_delete=models.PROTECT, null=True, related_name="rounds")
    step_tier = models.CharField(max_length=8, blank=True, default="")
    outcome = models.CharField(max_length=32, blank=True, default="")
    comparison = models.CharField(max_length=16, blank=True, default="")
    conclusion = models.CharField(max_length=16, blank=True, default="")
    entry = models.JSONField(null=True)  # the log entry's document, written by the engine at conclusion
    blame = models.CharField(max_length=16, blank=True, default="")  # whose fault a failed round is; "model" possible
    cause = models.TextField(blank=True, default="")
    started_at = models.DateTimeField()
    state_since = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["campaign_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["campaign", "number"], name="round_number_once"),
            models.UniqueConstraint(
                fields=["campaign"], condition=Q(state__in=["thinking", "evaluating"]), name="round_one_active"
            ),
            models.CheckConstraint(condition=Q(state__in=RoundState.values), name="round_state_known"),
        ]

    def __str__(self) -> str:
        return f"{self.campaign} round {self.number}"


class Hypothesis(models.Model):
    """A ranked idea of a campaign; a person may strike or edit it while the campaign is paused after diagnosis."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="hypotheses")
    key = models.CharField(max_length=32)
    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="hypotheses_stated")
    direction = models.CharField(max_length=32)
    function = models.CharField(max_length=100)
    text = models.TextField()
    evidence = models.TextField(blank=True, default="")
    expected_gain = models.FloatField()
    state = models.CharField(max_length=8, choices=HypothesisState.choices, default=HypothesisState.OPEN)
    edited_by = models.ForeignKey(USER, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        ordering = ["-expected_gain", "id"]
        verbose_name_plural = "hypotheses"
        constraints = [models.UniqueConstraint(fields=["campaign", "key"], name="hypothesis_once")]

    def __str__(self) -> str:
        return f"{self.campaign} {self.key}"


class EngineResult(models.Model):
    """One input of the engine's fold, in order: a result document, or a person's choice. Append-only."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="engine_results")
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=32)
    document = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["campaign_id", "seq"]
        constraints = [models.UniqueConstraint(fields=["campaign", "seq"], name="engine_result_seq_once")]

    def __str__(self) -> str:
        return f"{self.campaign} result {self.seq}"


class Influence(models.Model):
    """A person whose words reach the agent (a review's comment, a spot check, an edited hypothesis): kernels proposed
    afterwards were built from them."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="influences")
    user = models.ForeignKey(USER, on_delete=models.PROTECT, related_name="+")
    source = models.CharField(max_length=64)  # "R-12", "spot check of round 4", "hypotheses"
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["campaign", "user", "source"], name="influence_once")]

    def __str__(self) -> str:
        return f"{self.user} through {self.source}"


__all__ = [
    "AgentTurn", "Campaign", "CanaryBase", "CanaryDrift", "CanaryReading", "EngineResult", "Hypothesis", "Influence",
    "Job", "Round", "SelfTest", "SelfTestOrder", "Worker",
]
