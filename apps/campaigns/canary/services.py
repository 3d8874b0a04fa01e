"""The canary's duties, and beginning a new reference by a maintainer."""

from __future__ import annotations

from django.conf import settings

from apps.audit.services import audit_record
from apps.campaigns.canary.bases import base_begin, base_finish
from apps.campaigns.canary.models import CanaryBase
from apps.campaigns.canary.orders import order_due
from apps.campaigns.canary.readings import collect
from apps.campaigns.jobs.selectors import workers
from apps.campaigns.jobs.workers import team_streams
from apps.core.errors import Invalid, Refused
from apps.stream.services import recording
from apps.teams import policies
from apps.teams.models import Team, User


def canary_sweep() -> None:
    """Keep what was measured, then order what is due. Idempotent; an engine killed anywhere in it goes on here."""
    for base in CanaryBase.objects.filter(job__isnull=False).select_related("job__verdict", "operator"):
        collect(base)
    if settings.CANARY_EVERY <= 0:
        return
    for status in workers():
        if status.up and status.worker.kind == "evalworker" and not status.worker.draining:
            order_due(status.worker)


def canary_rebase(*, base: CanaryBase, person: User, team: Team | None, reason: str) -> CanaryBase:
    """Begin a new reference: what the device takes from now on is what it takes. Ends an open drift.

    Raises:
        Refused: no maintainer. Invalid: no reason, or the base ended already.
    """
    why = policies.may_operate(person, team)
    if why:
        raise Refused(why)
    if not reason.strip():
        raise Invalid("A new reference needs a reason; it stays with the drift it ends.", key="reason")
    with recording(*team_streams()) as log:
        base.refresh_from_db()
        if base.ended_at is not None:
            raise Invalid("A new reference of this device began already; look at the system page again.", key="base")
        because = f"{person.name} began a new reference: {reason.strip()}"
        base_finish(base, because, log, person)
        row = base_begin(base.operator, base.backend, base.hardware, reason.strip(), person)
        audit_record(verb="canary.rebased", subject=row, actor=person, team=team, digest=row.kernel_id,
                     reason=reason.strip(), data={"hardware": row.hardware, "ended": base.pk})
    return row
