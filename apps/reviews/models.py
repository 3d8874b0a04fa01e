"""Review requests, decisions, threads, spot checks and vetoes."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from apps.reviews.choices import DecisionKind, RequestState, SpotCheckState, VerificationState

USER = settings.AUTH_USER_MODEL
TIERS = ["none", "light", "medium", "heavy"]


class ReviewRequest(models.Model):
    """A kernel asks to become champion. Bound to exact bytes and conditions: anything new makes it stale."""

    team = models.ForeignKey("teams.Team", on_delete=models.PROTECT, related_name="review_requests")
    slot = models.ForeignKey("kernels.Slot", on_delete=models.PROTECT, related_name="review_requests")
    campaign = models.ForeignKey(
        "campaigns.Campaign", on_delete=models.PROTECT, null=True, related_name="review_requests"
    )
    state = models.CharField(max_length=20, choices=RequestState.choices, default=RequestState.OPEN)
    version = models.PositiveIntegerField(default=1)
    # what it binds to
    kernel = models.ForeignKey("kernels.Kernel", on_delete=models.PROTECT, related_name="review_requests")
    champion = models.ForeignKey("kernels.Kernel", on_delete=models.PROTECT, null=True, related_name="+")
    base = models.ForeignKey("kernels.Kernel", on_delete=models.PROTECT, related_name="+")  # champion, else baseline
    verdict = models.ForeignKey("kernels.Verdict", on_delete=models.PROTECT, related_name="+")
    gate_tier = models.CharField(max_length=8)
    tier_why = models.JSONField(default=list)  # [{"line", "text"}]
    raised_tier = models.CharField(max_length=8, blank=True, default="")
    raised_by = models.ForeignKey(USER, on_delete=models.PROTECT, null=True, related_name="+")
    raised_reason = models.TextField(blank=True, default="")
    policy_version = models.PositiveIntegerField()
    conditions = models.JSONField()  # operator version, workload, goal digest, evaluator version, environment class
    conditions_digest = models.CharField(max_length=71)
    # bookkeeping
    opened_at = models.DateTimeField()
    opened_by = models.ForeignKey(USER, on_delete=models.PROTECT, null=True, related_name="+")  # null: by system
    opened_because = models.TextField(blank=True, default="")
    answers = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="answered_by")
    cause_code = models.CharField(max_length=32, blank=True, default="")
    cause = models.TextField(blank=True, default="")
    closed_at = models.DateTimeField(null=True)
    verify_job = models.OneToOneField("campaigns.Job", on_delete=models.PROTECT, null=True, related_name="review")
    verify_verdict = models.ForeignKey("kernels.Verdict", on_delete=models.PROTECT, null=True, related_name="+")
    auto = models.BooleanField(default=False)  # light, promoted by itself: the team turned that on

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["campaign"],
                condition=Q(state__in=["open", "approved", "verifying"]),
                name="review_one_open_per_campaign",
            ),
            models.CheckConstraint(condition=Q(state__in=RequestState.values), name="review_state_known"),
            models.CheckConstraint(condition=Q(gate_tier__in=TIERS), name="review_tier_known"),
            models.CheckConstraint(condition=Q(raised_tier__in=["", *TIERS]), name="review_raised_tier_known"),
        ]
        indexes = [models.Index(fields=["team", "state"])]

    def __str__(self) -> str:
        return f"R-{self.pk}"


class Decision(models.Model):
    """What a person decided, on which bytes. Append-only; a later one by the same person supersedes."""

    request = models.ForeignKey(ReviewRequest, on_delete=models.PROTECT, related_name="decisions")
    user = models.ForeignKey(USER, on_delete=models.PROTECT, related_name="decisions")
    grant = models.ForeignKey("teams.RoleGrant", on_delete=models.PROTECT, related_name="+")  # the reviewer role held
    kind = models.CharField(max_length=16, choices=DecisionKind.choices)
    comment = models.TextField(blank=True, default="")
    kernel_digest = models.CharField(max_length=71)  # as shown to the person
    request_version = models.PositiveIntegerField()
    gate_tier = models.CharField(max_length=8)
    ticked = models.JSONField(default=list)  # regressions accepted by name
    reauthenticated_at = models.DateTimeField()
    session_hash = models.CharField(max_length=64, blank=True, default="")
    demo = models.BooleanField(default=False)
    self_review = models.BooleanField(default=False)
    at = models.DateTimeField()
    seal = models.CharField(max_length=64, blank=True, default="")  # see reviews.seals

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=DecisionKind.values), name="decision_kind_known"),
            models.CheckConstraint(condition=Q(kind="approve") | ~Q(comment=""), name="decision_comment_given"),
            models.CheckConstraint(
                condition=Q(self_review=False) | ~Q(gate_tier="heavy"), name="decision_self_review_never_heavy"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} on {self.request} by {self.user}"


class Veto(models.Model):
    """Pins a normalised tree for a team. Append-only; it stands until a ``VetoLift`` names it."""

    team = models.ForeignKey("teams.Team", on_delete=models.PROTECT, related_name="vetoes")
    normal_digest = models.CharField(max_length=71, db_index=True)
    decision = models.OneToOneField(Decision, on_delete=models.PROTECT, related_name="veto")
    by = models.ForeignKey(USER, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "vetoes"

    def __str__(self) -> str:
        return f"veto of {self.normal_digest[:15]} by {self.by}"


class VetoLift(models.Model):
    """The end of a veto, with its reason. Append-only; approves nothing."""

    veto = models.OneToOneField(Veto, on_delete=models.PROTECT, related_name="lift")
    by = models.ForeignKey(USER, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField()
    at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=~Q(reason=""), name="veto_lift_reason_given")]

    def __str__(self) -> str:
        return f"lift of {self.veto}"


class Thread(models.Model):
    """A discussion pinned to a line of one side, or to the request as a whole (``line`` null)."""

    request = models.ForeignKey(ReviewRequest, on_delete=models.PROTECT, related_name="threads")
    kernel = models.ForeignKey("kernels.Kernel", on_delete=models.PROTECT, null=True, related_name="+")
    line = models.PositiveIntegerField(null=True)
    blocking = models.BooleanField(default=False)
    opened_by = models.ForeignKey(USER, on_delete=models.PROTECT, related_name="+")
    opened_at = models.DateTimeField()
    resolved_by = models.ForeignKey(USER, on_delete=models.PROTECT, null=True, related_name="+")
    resolved_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"thread {self.pk} on {self.request}"


class Comment(models.Model):
    """One remark of a thread."""

    thread = models.ForeignKey(Thread, on_delete=models.PROTECT, related_name="comments")
    author = models.ForeignKey(USER, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.text[:60]


class ViewedMark(models.Model):
    """A reviewer has seen an item (a tab, a hunk) of these exact bytes."""

    request = models.ForeignKey(ReviewRequest, on_delete=models.PROTECT, related_name="viewed_marks")
    user = models.ForeignKey(USER, on_delete=models.PROTECT, related_name="+")
    item = models.CharField(max_length=100)
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["request", "user", "item"], name="viewed_once")]

    def __str__(self) -> str:
        return f"{self.item} of {self.request} seen by {self.user}"


class SpotCheck(models.Model):
    """A reviewer is asked to look at a round while the campaign runs (R17)."""

    campaign = models.ForeignKey("campaigns.Campaign", on_delete=models.PROTECT, related_name="spot_checks")
    round = models.OneToOneField("campaigns.Round", on_delete=models.PROTECT, related_name="spot_check")
    state = models.CharField(max_length=8, choices=SpotCheckState.choices, default=SpotCheckState.ASKED)
    version = models.PositiveIntegerField(default=1)
    asked_at = models.DateTimeField()
    answered_by = models.ForeignKey(USER, on_delete=models.PROTECT, null=True, related_name="+")
    answered_at = models.DateTimeField(null=True)
    concern = models.BooleanField(default=False)
    comment = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=SpotCheckState.values), name="spotcheck_state_known")
        ]

    def __str__(self) -> str:
        return f"spot check of {self.round}"


class Verification(models.Model):
    """A re-verification that no request carries: of a rollback, or of a standing champion under a new evaluator."""

    slot = models.ForeignKey("kernels.Slot", on_delete=models.PROTECT, related_name="verifications")
    kernel = models.ForeignKey("kernels.Kernel", on_delete=models.PROTECT, related_name="+")
    champion = models.ForeignKey("kernels.Kernel", on_delete=models.PROTECT, null=True, related_name="+")
    kind = models.CharField(max_length=12)  # "rollback", "recheck"
    restores = models.ForeignKey("kernels.Promotion", on_delete=models.PROTECT, null=True, related_name="+")
    state = models.CharField(max_length=8, choices=VerificationState.choices, default=VerificationState.RUNNING)
    by = models.ForeignKey(USER, on_delete=models.PROTECT, null=True, related_name="+")
    reason = models.TextField(blank=True, default="")
    job = models.OneToOneField("campaigns.Job", on_delete=models.PROTECT, null=True, related_name="verification")
    cause = models.TextField(blank=True, default="")
    at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["slot"], condition=Q(state="running"), name="verification_one_per_slot"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.kernel_id} in {self.slot}"


class Switches(models.Model):
    """What the database's triggers must know of the settings; one row, rewritten at every start and promotion."""

    demo = models.BooleanField(default=False)
    self_review = models.BooleanField(default=False)

    class Meta:
        verbose_name_plural = "switches"

    def __str__(self) -> str:
        return f"demo {self.demo}, self-review {self.self_review}"
