"""Rollback, emptying a slot, and the verifications that no review request carries."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError
from django.utils import timezone

from apps.audit.services import audit_record
from apps.bridge import api
from apps.campaigns.choices import JobPurpose, JobState
from apps.campaigns.jobs.models import Job
from apps.campaigns.jobs.services import job_cancel, job_enqueue
from apps.campaigns.jobs.workers import selftest_gap
from apps.campaigns.models import Campaign
from apps.core.errors import AppError, Invalid, Refused
from apps.core.transitions import transition
from apps.kernels.choices import SLOT_MACHINE, PromotionKind, SlotState
from apps.kernels.models import Champion, Kernel, Promotion, Quarantine, Slot, Verdict
from apps.kernels.selectors import champion_of
from apps.reviews import gate, history, triggers
from apps.reviews.binding import BytesDiffer, gate_tier, intact
from apps.reviews.choices import VerificationState
from apps.reviews.models import Verification
from apps.reviews.services.promotion import crown, switches_write
from apps.stream.services import Log, recording
from apps.teams import policies as team_policies
from apps.teams.models import User
from apps.teams.sessions import proof_check

MADE_WAY = "It made way for a rollback; what is champion afterwards is checked again."


def rollback_start(
    *, slot: Slot, promotion: Promotion, person: User, reason: str, reauthenticated_at: datetime | None,
    session_hash: str = "",
) -> Verification:
    """Ask for a former champion back. It is verified once more, then becomes champion by a promotion of kind
    ``rollback``. ``reauthenticated_at`` is when the session last proved the person, as for a decision.

    Raises:
        Refused: no reviewer; the proof of identity is older than 15 minutes; the kernel is quarantined, vetoed or
            champion already; a verification runs.
        Invalid: no reason, or not a former champion of this slot.
    """
    why = team_policies.may_roll_back(person, slot.team)
    if why:
        raise Refused(why)
    if not reason.strip():
        raise Invalid("A rollback needs a reason; it stays in the slot's history.", key="reason")
    proof_check(reauthenticated_at, "A rollback")
    if promotion.slot_id != slot.pk:
        raise Invalid("That kernel was never champion of this slot.", key="promotion")
    problem = history.promotion_problem(promotion)
    if problem is not None:
        raise Refused(f"That promotion is carried by no valid approval: {problem} It cannot be restored.")
    _restorable(slot, promotion.kernel)
    return verification_order(slot, promotion.kernel, kind="rollback", person=person, reason=reason, restores=promotion,
                              session_hash=session_hash)


def _restorable(slot: Slot, kernel: Kernel) -> None:
    champion = champion_of(slot)
    if champion is not None and champion.kernel_id == kernel.pk and slot.state == SlotState.CHAMPION:
        raise Refused(f"Kernel {kernel.short} is the champion already.")
    if Quarantine.objects.filter(slot=slot, kernel=kernel).exists():
        raise Refused(f"Kernel {kernel.short} was quarantined; it can come back only through a new review.")
    standing = gate.standing_vetoes(slot.team_id, kernel)
    if standing:
        raise Refused(f"{standing[0].by.name} vetoed this kernel: {standing[0].decision.comment}")


def verification_order(
    slot: Slot, kernel: Kernel, *, kind: str, person: User | None, reason: str, restores: Promotion | None,
    priority: int | None = None, session_hash: str = "",
) -> Verification:
    """Order a verification of ``kernel`` in a slot; a rollback takes the place of a recheck that still waits or runs.

    Raises:
        Refused: another verification of this slot runs.
    """
    key = uuid.uuid4()
    champion = champion_of(slot)
    rival = champion.kernel if champion is not None and champion.kernel_id != kernel.pk else None
    base = rival or gate_tier(slot, kernel).base
    against = {("champion" if rival else "baseline"): intact(base)} if base.pk != kernel.pk else {}
    document = api.verification_request(
        job=str(key), goal=_goal(slot, kernel), operator_version=api.operator(slot.operator.name).version,
        candidate=intact(kernel), against=against, isolation=settings.REQUIRED_ISOLATION,
    )
    with recording(slot.team.stream) as log:
        if kind == "rollback":
            _make_way(slot, log)
        if Verification.objects.filter(slot=slot, state=VerificationState.RUNNING).exists():
            raise Refused("A verification for this slot is running already; wait for its result.")
        job = job_enqueue(purpose=JobPurpose.PROMOTION, request=document, team=slot.team, kernel=kernel, job_id=key)
        if priority is not None:
            Job.objects.filter(pk=job.pk).update(priority=priority)
        row = Verification.objects.create(
            slot=slot, kernel=kernel, champion=champion.kernel if champion else None, kind=kind, restores=restores,
            by=person, reason=reason, job=job, at=timezone.now(),
        )
        log.append(slot.team.stream, "promotion.started", {"slot": slot.pk, "kernel": kernel.pk, "kind": kind,
                                                           "by": person.name if person else "system"})
        audit_record(verb=f"{kind}.started", subject=slot, actor=person, team=slot.team, digest=kernel.pk,
                     reason=reason, session_hash=session_hash)
    return row


def _make_way(slot: Slot, log: Log) -> None:
    for row in Verification.objects.filter(slot=slot, kind="recheck", state=VerificationState.RUNNING).select_related(
        "job", "slot__team"
    ):
        if row.job is not None:
            job_cancel(job=row.job, reason=MADE_WAY)
        verification_close(row, VerificationState.REFUSED, MADE_WAY, log)


def _goal(slot: Slot, kernel: Kernel) -> dict[str, Any]:
    """The goal under which the kernel was made here; the defaults where none is known."""
    campaign = Campaign.objects.filter(slot=slot, rounds__kernel=kernel).order_by("-id").first()
    if campaign is not None:
        return campaign.goal
    return api.goal_default(slot.operator.name, slot.backend, slot.hardware.name, slot.workload)


def verifications_sweep() -> None:
    """Handle verifications that ended. Called by ``gate_sweep``."""
    running = Verification.objects.filter(state=VerificationState.RUNNING).select_related(
        "job__verdict", "slot__team", "slot__operator", "slot__hardware", "kernel", "restores", "by"
    )
    for row in running:
        if row.job is None or row.job.state in (JobState.QUEUED, JobState.LEASED):
            continue
        try:
            with recording(row.slot.team.stream) as log:
                _handle(row, log)
        except (AppError, IntegrityError, BytesDiffer) as error:
            with recording(row.slot.team.stream) as log:
                verification_close(row, VerificationState.REFUSED, str(error), log)


def _handle(row: Verification, log: Log) -> None:
    from apps.reviews.services.recheck import recheck_handle

    verdict = row.job.verdict if row.job is not None else None
    if row.kind == "recheck":
        recheck_handle(row, verdict, log)
        return
    problem = _rollback_problem(row, verdict)
    if problem is not None or verdict is None:
        verification_close(row, VerificationState.REFUSED, problem or "", log)
        return
    _roll_back(row, verdict, log)


def _rollback_problem(row: Verification, verdict: Verdict | None) -> str | None:
    """Asked anew in the transaction: roles, quarantine, vetoes and the champion may have changed meanwhile."""
    if verdict is None:
        return f"The verification ended without a verdict: {row.job.error if row.job is not None else ''}"
    why = team_policies.may_roll_back(row.by, row.slot.team)
    if why:
        return why
    champion = champion_of(row.slot)
    if (champion.kernel_id if champion else None) != row.champion_id:
        return "The champion of the slot changed while this was verified; ask again."
    _restorable(row.slot, row.kernel)
    if verdict.outcome != "passed":
        return f"The verification says {verdict.outcome}: {gate.first_reason(verdict)}"
    if not verdict.recomputed or verdict.evidence not in gate.EVIDENCE:
        return "The verification's times are no evidence."
    if verdict.isolation < settings.REQUIRED_ISOLATION:
        return f"The verification ran at isolation level {verdict.isolation}; {settings.REQUIRED_ISOLATION} is needed."
    gap = selftest_gap(verdict.environment_class, verdict.isolation, row.slot.backend)
    if gap:
        return gap
    if triggers.missing():
        return "The database's own guards are missing or altered; run `python manage.py migrate`."
    return None


def _roll_back(row: Verification, verdict: Verdict, log: Log) -> None:
    slot = Slot.objects.select_for_update(of=("self",)).select_related("team", "operator", "hardware").get(
        pk=row.slot_id
    )
    switches_write()
    promotion = Promotion.objects.create(
        slot=slot, kernel=row.kernel, kind=PromotionKind.ROLLBACK, verdict=verdict,
        previous=row.champion if slot.state != SlotState.EMPTY else None, gate_tier=gate_tier(slot, row.kernel).tier,
        required_approvals=0, policy_version=slot.team.policy_version, by=row.by, reason=row.reason,
        restores=row.restores, at=timezone.now(),
    )
    crown(slot, promotion, log)
    verification_close(row, VerificationState.DONE, "", log)
    log.append(slot.team.stream, "promotion.done", {"promotion": promotion.pk, "slot": slot.pk, "kind": "rollback",
                                                    "kernel": row.kernel_id,
                                                    "by": row.by.name if row.by else ""})
    audit_record(verb="promotion.rollback", subject=promotion, actor=row.by, team=slot.team, digest=row.kernel_id,
                 reason=row.reason, data={"slot": slot.pk, "restores": row.restores_id, "verdict": verdict.pk})


def verification_close(row: Verification, state: str, cause: str, log: Log) -> None:
    """End a running verification inside an open transaction; ended ones stay as they are."""
    if not Verification.objects.filter(pk=row.pk, state=VerificationState.RUNNING).update(
        state=state, cause=cause, ended_at=timezone.now()
    ):
        return
    if state == VerificationState.REFUSED:
        log.append(row.slot.team.stream, "promotion.refused", {"slot": row.slot_id, "kernel": row.kernel_id,
                                                               "kind": row.kind, "cause": cause})
        audit_record(verb=f"{row.kind}.refused", subject=row.slot, actor=None, team=row.slot.team, digest=row.kernel_id,
                     reason=cause)


def slot_empty(
    *, slot: Slot, person: User, reason: str, reauthenticated_at: datetime | None, session_hash: str = ""
) -> Slot:
    """Take the champion out; the slot is empty and what comes next is compared with the shipped baseline.

    Raises:
        Refused: no reviewer; the proof of identity is older than 15 minutes. Invalid: no reason.
    """
    why = team_policies.may_roll_back(person, slot.team)
    if why:
        raise Refused(why)
    if not reason.strip():
        raise Invalid("Emptying a slot needs a reason.", key="reason")
    proof_check(reauthenticated_at, "Emptying a slot")
    with recording(slot.team.stream) as log:
        slot.refresh_from_db()
        before = slot.state
        champion = champion_of(slot)
        transition(slot, SLOT_MACHINE, SlotState.EMPTY, state_reason=reason.strip())
        Champion.objects.filter(slot=slot).delete()
        log.append(slot.team.stream, "champion.emptied", {"slot": slot.pk, "name": str(slot), "reason": reason})
        audit_record(verb="champion.emptied", subject=slot, actor=person, team=slot.team, before=before,
                     after=SlotState.EMPTY, digest=champion.kernel_id if champion else "", reason=reason,
                     session_hash=session_hash)
    return slot
