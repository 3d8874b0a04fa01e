"""Writing the trail. Called inside the transaction whose change it records."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone

from apps.audit.models import AuditEntry
from apps.teams.models import Team, User
from apps.teams.selectors import roles_of


def audit_record(
    *,
    verb: str,
    subject: models.Model,
    actor: User | None,
    team: Team | None,
    digest: str = "",
    before: str = "",
    after: str = "",
    reason: str = "",
    session_hash: str = "",
    data: dict[str, Any] | None = None,
) -> AuditEntry:
    """Append one entry. ``actor`` ``None`` means the system acted; names and roles are copied as they are now."""
    roles = sorted(roles_of(actor, team)) if actor is not None and team is not None else []
    return AuditEntry.objects.create(
        at=timezone.now(), actor=actor, actor_name=actor.name if actor is not None else "system", actor_roles=roles,
        team=team, verb=verb, object_type=subject._meta.label_lower, object_id=str(subject.pk), digest=digest,
        before=before, after=after, reason=reason, session_hash=session_hash,
        policy_version=team.policy_version if team is not None else None, data=data or {},
    )
