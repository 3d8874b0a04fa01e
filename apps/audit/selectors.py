"""Reading the trail."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from apps.audit.models import AuditEntry
from apps.core.errors import Refused
from apps.teams import policies
from apps.teams.models import Team


def entries_for(user: Any, team: Team | None = None) -> QuerySet[AuditEntry]:
    """Entries of ``team`` (of the whole installation for an admin and ``None``), newest first.

    Raises:
        Refused: the person may not read this trail.
    """
    why = policies.may_see_audit(user, team)
    if why:
        raise Refused(why)
    entries = AuditEntry.objects.select_related("actor", "team")
    return entries if team is None else entries.filter(team=team)
