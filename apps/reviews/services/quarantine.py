"""Setting a champion aside: it is no longer handed out."""

from __future__ import annotations

from django.utils import timezone

from apps.audit.services import audit_record
from apps.core.errors import Invalid, Refused
from apps.core.transitions import transition
from apps.kernels.choices import SLOT_MACHINE, SlotState
from apps.kernels.models import Quarantine, Slot, Verdict
from apps.kernels.selectors import champion_of
from apps.stream.services import Log, recording
from apps.teams import policies as team_policies
from apps.teams.models import User


def quarantine(slot: Slot, reason: str, log: Log, *, by: User | None = None, verdict: Verdict | None = None) -> None:
    """Set a champion aside inside an open transaction: it is no longer handed out."""
    champion = champion_of(slot)
    if champion is None or slot.state != SlotState.CHAMPION:
        raise Refused("There is no champion in this slot to quarantine.")
    Quarantine.objects.create(slot=slot, kernel=champion.kernel, promotion=champion.promotion, verdict=verdict, by=by,
                              reason=reason, at=timezone.now())
    transition(slot, SLOT_MACHINE, SlotState.QUARANTINED, state_reason=reason)
    log.append(slot.team.stream, "champion.quarantined", {"slot": slot.pk, "name": str(slot), "reason": reason,
                                                          "kernel": champion.kernel_id})
    audit_record(verb="champion.quarantined", subject=slot, actor=by, team=slot.team, digest=champion.kernel_id,
                 before=SlotState.CHAMPION, after=SlotState.QUARANTINED, reason=reason)


def champion_quarantine(*, slot: Slot, reason: str, person: User | None = None) -> Slot:
    """Set a champion aside, by a reviewer or by the system.

    Raises:
        Refused: no reviewer, or no champion. Invalid: no reason.
    """
    if person is not None:
        why = team_policies.may_roll_back(person, slot.team)
        if why:
            raise Refused(why)
    if not reason.strip():
        raise Invalid("A quarantine needs a reason.", key="reason")
    with recording(slot.team.stream) as log:
        slot.refresh_from_db()
        quarantine(slot, reason.strip(), log, by=person)
    return slot
