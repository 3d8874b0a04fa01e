"""Operators, hardware, kernels, verdicts, slots, promotions and champions."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from apps.kernels.choices import ContributionKind, PromotionKind, SlotState

DIGEST = 71  # "sha256:" and 64 hex digits


class Operator(models.Model):
    """An operator that the harness declares; synchronised by ``operators_sync``."""

    name = models.CharField(max_length=64, unique=True)
    version = models.CharField(max_length=32)
    title = models.CharField(max_length=100)
    active = models.BooleanField(default=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Hardware(models.Model):
    """A device that figures belong to, for instance ``nvidia-h200`` or ``cpu-amd-epyc-1t``."""

    name = models.CharField(max_length=100, unique=True)
    title = models.CharField(max_length=150, blank=True, default="")
    backends = models.JSONField(default=list)
    facts = models.JSONField(default=dict)  # the hardware digest's document, empty where not detected here

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "hardware"

    def __str__(self) -> str:
        return self.name


class Blob(models.Model):
    """Immutable bytes by digest: raw samples, profiles, plans."""

    digest = models.CharField(max_length=DIGEST, primary_key=True)
    data = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.digest


class Kernel(models.Model):
    """One immutable source file. ``digest`` is the SHA-256 of ``source``; the same bytes are shown, parsed and run."""

    digest = models.CharField(max_length=DIGEST, primary_key=True)
    source = models.BinaryField()
    normal_digest = models.CharField(max_length=DIGEST, db_index=True)
    operator = models.ForeignKey(Operator, on_delete=models.PROTECT, related_name="kernels")
    backend = models.CharField(max_length=16)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.digest

    @property
    def text(self) -> str:
        """The source as text."""
        return bytes(self.source).decode("utf-8")

    @property
    def short(self) -> str:
        """Eight hex digits, as shown in tables."""
        return self.digest.removeprefix("sha256:")[:8]


class KernelOrigin(models.Model):
    """A team's link to a kernel: where it came from. The parent is what it was built on."""

    team = models.ForeignKey("teams.Team", on_delete=models.PROTECT, related_name="kernel_origins")
    kernel = models.ForeignKey(Kernel, on_delete=models.PROTECT, related_name="origins")
    parent = models.ForeignKey(Kernel, on_delete=models.PROTECT, null=True, related_name="children")
    source = models.CharField(max_length=64)  # "baseline", "campaign:12", "import", "fork"
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "kernel", "source"], name="kernel_origin_once")]

    def __str__(self) -> str:
        return f"{self.kernel_id} from {self.source}"


class Contribution(models.Model):
    """A person who may not approve this kernel, with the reason. Append-only."""

    team = models.ForeignKey("teams.Team", on_delete=models.PROTECT, related_name="+")
    kernel = models.ForeignKey(Kernel, on_delete=models.PROTECT, related_name="contributions")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="contributions")
    kind = models.CharField(max_length=12, choices=ContributionKind.choices)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "kernel", "user", "kind"], name="contribution_once"),
            models.CheckConstraint(condition=Q(kind__in=ContributionKind.values), name="contribution_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} {self.kind} {self.kernel_id}"


class Verdict(models.Model):
    """The evaluator's result, stored as it came; the columns are copies for queries. Never edited."""

    team = models.ForeignKey("teams.Team", on_delete=models.PROTECT, null=True, related_name="verdicts")
    kernel = models.ForeignKey(Kernel, on_delete=models.PROTECT, related_name="verdicts")
    purpose = models.CharField(max_length=16)
    workload = models.CharField(max_length=64)
    document = models.JSONField()
    samples = models.ForeignKey(Blob, on_delete=models.PROTECT, null=True, related_name="+")
    against = models.JSONField(default=dict)  # digest of each opponent by role, from the request
    outcome = models.CharField(max_length=32)
    comparison = models.CharField(max_length=16)
    compared_with = models.CharField(max_length=16, blank=True, default="")
    hardware = models.CharField(max_length=100)
    environment_class = models.CharField(max_length=255)
    evaluator_version = models.CharField(max_length=32)
    operator_version = models.CharField(max_length=32)
    goal_digest = models.CharField(max_length=DIGEST, blank=True, default="")
    isolation = models.PositiveSmallIntegerField()
    evidence = models.CharField(max_length=16, blank=True, default="")
    score = models.FloatField(null=True)
    suspicious = models.BooleanField(default=False)
    regressions = models.JSONField(default=list)  # shapes whose whole interval is more than 5 % slower
    foreign = models.BooleanField(default=False)
    foreign_origin = models.TextField(blank=True, default="")
    recomputed = models.BooleanField(default=False)  # the comparison was recomputed here from raw samples
    job_key = models.UUIDField(unique=True, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(comparison="none") | Q(outcome="passed"), name="verdict_comparison_needs_passed"
            ),
            models.CheckConstraint(condition=Q(foreign=False) | Q(job_key__isnull=True), name="verdict_foreign_no_job"),
        ]
        indexes = [models.Index(fields=["hardware", "workload", "environment_class"])]

    def __str__(self) -> str:
        return f"verdict {self.pk} on {self.kernel_id}"


class Slot(models.Model):
    """Team x operator x backend x hardware x workload: what a champion is champion of."""

    team = models.ForeignKey("teams.Team", on_delete=models.PROTECT, related_name="slots")
    operator = models.ForeignKey(Operator, on_delete=models.PROTECT, related_name="slots")
    backend = models.CharField(max_length=16)
    hardware = models.ForeignKey(Hardware, on_delete=models.PROTECT, related_name="slots")
    workload = models.CharField(max_length=64)
    state = models.CharField(max_length=12, choices=SlotState.choices, default=SlotState.EMPTY)
    version = models.PositiveIntegerField(default=1)
    state_reason = models.TextField(blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "operator", "backend", "hardware", "workload"], name="slot_once"
            ),
            models.CheckConstraint(condition=Q(state__in=SlotState.values), name="slot_state_known"),
        ]

    def __str__(self) -> str:
        return f"{self.operator} / {self.backend} / {self.hardware} / {self.workload}"


class Promotion(models.Model):
    """A kernel became champion of a slot. Append-only; triggers refuse one without its distinct approvals."""

    slot = models.ForeignKey(Slot, on_delete=models.PROTECT, related_name="promotions")
    kernel = models.ForeignKey(Kernel, on_delete=models.PROTECT, related_name="promotions")
    kind = models.CharField(max_length=12, choices=PromotionKind.choices)
    request = models.OneToOneField(
        "reviews.ReviewRequest", on_delete=models.PROTECT, null=True, related_name="promotion"
    )
    verdict = models.ForeignKey(Verdict, on_delete=models.PROTECT, related_name="+")  # the re-verification
    previous = models.ForeignKey(Kernel, on_delete=models.PROTECT, null=True, related_name="+")
    gate_tier = models.CharField(max_length=8)
    required_approvals = models.PositiveSmallIntegerField()
    policy_version = models.PositiveIntegerField()
    self_reviewed = models.BooleanField(default=False)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    reason = models.TextField(blank=True, default="")
    restores = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")  # rollback only
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="reviewed", request__isnull=False, required_approvals__gte=1, restores__isnull=True)
                | Q(kind="auto", gate_tier__in=["none", "light"], required_approvals=0, restores__isnull=True)
                | (Q(kind="rollback", request__isnull=True, by__isnull=False, restores__isnull=False) & ~Q(reason="")),
                name="promotion_kind_complete",
            ),
            models.CheckConstraint(
                condition=~Q(gate_tier="heavy") | Q(kind="rollback") | Q(required_approvals__gte=2),
                name="promotion_heavy_needs_two",
            ),
            models.CheckConstraint(
                condition=Q(gate_tier__in=["none", "light", "medium", "heavy"]), name="promotion_tier_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kernel_id} champion of {self.slot}"


class Quarantine(models.Model):
    """A champion failed a later check. Append-only; such a kernel comes back only through a new review."""

    slot = models.ForeignKey(Slot, on_delete=models.PROTECT, related_name="quarantines")
    kernel = models.ForeignKey(Kernel, on_delete=models.PROTECT, related_name="quarantines")
    promotion = models.ForeignKey(Promotion, on_delete=models.PROTECT, related_name="+")
    verdict = models.ForeignKey(Verdict, on_delete=models.PROTECT, null=True, related_name="+")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    reason = models.TextField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [models.CheckConstraint(condition=~Q(reason=""), name="quarantine_reason_given")]

    def __str__(self) -> str:
        return f"quarantine of {self.kernel_id} in {self.slot}"


class Champion(models.Model):
    """The pointer of a slot. A trigger lets it name only the kernel of a promotion of that very slot."""

    slot = models.OneToOneField(Slot, on_delete=models.PROTECT, related_name="champion")
    kernel = models.ForeignKey(Kernel, on_delete=models.PROTECT, related_name="+")
    promotion = models.OneToOneField(Promotion, on_delete=models.PROTECT, related_name="+")
    since = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.kernel_id} in {self.slot}"
