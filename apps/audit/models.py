"""The append-only trail. Names are copied, so that history survives changes of people and teams."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class AuditEntry(models.Model):
    """Who did what to which object, with the state before and after and the reason. Triggers refuse any change."""

    at = models.DateTimeField()
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    actor_name = models.CharField(max_length=150)  # "system" where no person acted
    actor_roles = models.JSONField(default=list)
    team = models.ForeignKey("teams.Team", on_delete=models.PROTECT, null=True, related_name="audit_entries")
    verb = models.CharField(max_length=64)
    object_type = models.CharField(max_length=64)
    object_id = models.CharField(max_length=100)
    digest = models.CharField(max_length=71, blank=True, default="")
    before = models.CharField(max_length=32, blank=True, default="")
    after = models.CharField(max_length=32, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    session_hash = models.CharField(max_length=64, blank=True, default="")
    policy_version = models.PositiveIntegerField(null=True)
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["team", "-at"]),
            models.Index(fields=["object_type", "object_id"]),
        ]

    def __str__(self) -> str:
        return f"{self.actor_name} {self.verb} {self.object_type} {self.object_id}"
