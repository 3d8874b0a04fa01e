"""People, teams, memberships and the roles they hold."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q

from apps.teams.choices import AccountKind, Role


class User(AbstractUser):
    """A person or a service account. ``demo`` people exist only for the demo switch; their decisions are marked."""

    kind = models.CharField(max_length=8, choices=AccountKind.choices, default=AccountKind.PERSON)
    demo = models.BooleanField(default=False)
    last_looked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=AccountKind.values), name="user_kind_known"),
        ]

    @property
    def name(self) -> str:
        """The name shown: the full name, else the user name."""
        return self.get_full_name() or self.username


class Team(models.Model):
    """A team with its gate policy. Policy may only raise the floors that are constants in code."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=100)
    boards_shared = models.BooleanField(default=True)  # rows visible to other teams
    light_auto_promote = models.BooleanField(default=False)
    approvals_light = models.PositiveSmallIntegerField(default=1)
    approvals_medium = models.PositiveSmallIntegerField(default=1)
    approvals_heavy = models.PositiveSmallIntegerField(default=2)
    policy_version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(approvals_light__gte=1, approvals_medium__gte=1, approvals_heavy__gte=2),
                name="team_policy_above_floors",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def stream(self) -> str:
        """Name of the team's event stream."""
        return f"team:{self.pk}"


class Membership(models.Model):
    """A person in a team; ``ended_at`` set means no longer a member. Roles are the live ``RoleGrant`` rows."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="memberships")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"


class RoleGrant(models.Model):
    """One role of a membership from ``granted_at`` until ``revoked_at``; never deleted, so history can be asked."""

    membership = models.ForeignKey(Membership, on_delete=models.PROTECT, related_name="grants")
    role = models.CharField(max_length=12, choices=Role.choices)
    granted_at = models.DateTimeField()
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    reason = models.TextField(blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["membership", "role"], condition=Q(revoked_at__isnull=True), name="role_held_once"
            ),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.role} for {self.membership}"


class ApiToken(models.Model):
    """A token for scripts. Only its SHA-256 is kept. Tokens read, and start campaigns with the scope; never decide."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="tokens")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=71, unique=True)
    can_run_campaigns = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name
