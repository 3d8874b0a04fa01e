"""Promotion in three steps: re-verify once, one short transaction, and tags that are derived afterwards elsewhere."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.audit.services import audit_record
from apps.bridge import api
from apps.campaigns.canary.selectors import drift_gap
from apps.campaigns.choices import JobPurpose, JobState
from apps.campaigns.jobs.services import job_enqueue
from apps.core.errors import AppError, GateRefused
from apps.core.transitions import transition
from apps.kernels.choices import SLOT_MACHINE, PromotionKind, SlotState
from apps.kernels.models import Champion, Promotion, Slot
from apps.reviews import gate, policies
from apps.reviews.binding import intact
from apps.reviews.choices import REQUEST_MACHINE, REQUEST_OPEN, RequestState
from apps.reviews.models import ReviewRequest, Switches
from apps.reviews.services.decisions import AFTER_APPROVAL, _locked, approved_check
from apps.reviews.services.requests import announce, close, stale_check, streams_of
from apps.stream.services import Log, recording
from apps.teams.choices import Role
from apps.teams.models import RoleGrant, Team, User


def switches_write() -> None:
    """Tell the database's triggers what the settings say; at every start and before every promotion."""
    Switches.objects.update_or_create(
        pk=1, defaults={"demo": settings.DEMO, "self_review": settings.SELF_REVIEW}
    )


def promotion_start(*, request: ReviewRequest, person: User | None = None) -> ReviewRequest:
    """Step 1: order the verification of an approved request. Called by itself as soon as nothing else is missing.

    Raises:
        GateRefused: what is missing, in sentences.
    """
    if stale_check(request):
        raise GateRefused(f"{request} is stale: {request.cause}", code="stale")
    with recording(*streams_of(request)) as log:
        request = _locked(request)
        approved_check(request)
        missing = gate.unmet(request, without=("verification",))
        if missing or request.state != RequestState.APPROVED:
            sentences = tuple(line.sentence for line in missing) or (f"{request} is {request.get_state_display()}.",)
            raise GateRefused(f"{request} cannot be verified yet: {' '.join(sentences)}", unmet=sentences)
        job = _verification_job(request)
        transition(request, REQUEST_MACHINE, RequestState.VERIFYING, verify_job=job)
        announce(request, log, "promotion.started", {"job": str(job.pk), "by": person.name if person else "system"})
        audit_record(verb="promotion.started", subject=request, actor=person, team=request.team,
                     digest=request.kernel_id, before=RequestState.APPROVED, after=RequestState.VERIFYING)
    return request


def _verification_job(request: ReviewRequest):
    key = uuid.uuid4()
    role = "champion" if request.champion_id else "baseline"
    campaign = request.campaign
    assert campaign is not None
    document = api.verification_request(
        job=str(key), goal=campaign.goal, operator_version=request.conditions["operator_version"],
        candidate=intact(request.kernel), against={role: intact(request.base)}, isolation=settings.REQUIRED_ISOLATION,
    )
    return job_enqueue(purpose=JobPurpose.PROMOTION, request=document, team=request.team, kernel=request.kernel,
                       campaign=campaign, job_id=key)


def promotion_finish(*, request: ReviewRequest) -> Promotion | None:
    """Step 2, once the verification ended: promote, or close the request with the numbers. Idempotent.

    Returns the promotion, ``None`` when the request was closed instead or is not that far.
    """
    request.refresh_from_db()
    if request.state != RequestState.VERIFYING or request.verify_job is None:
        return None
    if request.verify_job.state in (JobState.QUEUED, JobState.LEASED):
        return None
    try:
        with recording(*streams_of(request)) as log:
            return _finish(_locked(request), log)
    except (AppError, IntegrityError) as error:
        # The database's own guards, or a rule that changed in this very moment: nothing was promoted.
        _refuse(request, str(error))
        return None


def _finish(request: ReviewRequest, log: Log) -> Promotion | None:
    slot = Slot.objects.select_for_update(of=("self",)).select_related("team", "operator", "hardware").get(
        pk=request.slot_id
    )
    # Nobody takes a role away or changes the policy between these reads and the commit.
    list(Team.objects.select_for_update().filter(pk=slot.team_id))
    list(RoleGrant.objects.select_for_update(of=("self",)).filter(
        membership__team=slot.team_id, role=Role.REVIEWER, revoked_at__isnull=True
    ))
    slot.team.refresh_from_db()
    if request.state != RequestState.VERIFYING or request.verify_job is None:
        return None
    problem = gate.verification_problem(request)
    if problem is not None:
        close(request, RequestState.CLOSED, log, code="verification_failed", cause=problem,
              verify_verdict=request.verify_job.verdict)
        announce(request, log, "promotion.refused", {"cause": problem})
        return None
    ReviewRequest.objects.filter(pk=request.pk).update(verify_verdict=request.verify_job.verdict)
    request.verify_verdict = request.verify_job.verdict
    missing = gate.unmet(request)
    if missing:
        _close_unmet(request, missing, log)
        return None
    return _promote(request, slot, log)


def _close_unmet(request: ReviewRequest, missing: list[gate.Requirement], log: Log) -> None:
    """Everything was verified, but something else no longer holds. What can still come is waited for."""
    if all(line.code in AFTER_APPROVAL for line in missing):
        if gate.verified_in_drift(request) and drift_gap(request.slot.hardware.name) is None:
            _verify_anew(request, log)
        return
    cause = " ".join(line.sentence for line in missing)
    close(request, RequestState.STALE, log, code=missing[0].code, cause=cause)
    announce(request, log, "promotion.refused", {"cause": cause})


def _verify_anew(request: ReviewRequest, log: Log) -> None:
    """The drift is over: what was measured in it carries nothing, so the verification is ordered once more."""
    job, before = _verification_job(request), request.verify_job_id
    ReviewRequest.objects.filter(pk=request.pk).update(verify_job=job, verify_verdict=None)
    announce(request, log, "promotion.started", {"job": str(job.pk), "by": "system"})
    audit_record(verb="promotion.reverified", subject=request, actor=None, team=request.team, digest=request.kernel_id,
                 reason="The device drifted while it was measured.", data={"before": str(before), "job": str(job.pk)})


def _promote(request: ReviewRequest, slot: Slot, log: Log) -> Promotion:
    switches_write()
    verdict = request.verify_verdict
    assert verdict is not None
    tier = policies.effective_tier(request)
    counted = gate.counted_approvals(request)
    champion = Champion.objects.filter(slot=slot).first() if slot.state != SlotState.EMPTY else None
    promotion = Promotion.objects.create(
        slot=slot, kernel=request.kernel, kind=PromotionKind.AUTO if request.auto else PromotionKind.REVIEWED,
        request=request, verdict=verdict, previous=champion.kernel if champion else None,
        gate_tier=tier, required_approvals=0 if request.auto else policies.required_approvals(slot.team, tier),
        policy_version=slot.team.policy_version, self_reviewed=any(d.self_review for d in counted),
        by=None, reason=request.opened_because, at=timezone.now(),
    )
    crown(slot, promotion, log)
    transition(request, REQUEST_MACHINE, RequestState.PROMOTED, closed_at=promotion.at)
    names = [decision.user.name for decision in counted]
    announce(request, log, "promotion.done", {"promotion": promotion.pk, "tier": tier, "approved_by": names})
    audit_record(
        verb="promotion.done", subject=promotion, actor=None, team=slot.team, digest=request.kernel_id,
        before=promotion.previous.short if promotion.previous else "", after=request.kernel.short,
        data={"request": request.pk, "slot": slot.pk, "tier": tier, "verdict": verdict.pk,
              "approvals": [decision.pk for decision in counted], "approved_by": names},
    )
    return promotion


def crown(slot: Slot, promotion: Promotion, log: Log) -> None:
    """Move the slot's pointer to a promotion that was just written, in the same transaction."""
    changed = Champion.objects.filter(slot=slot).update(
        kernel=promotion.kernel, promotion=promotion, since=promotion.at
    )
    if not changed:
        Champion.objects.create(slot=slot, kernel=promotion.kernel, promotion=promotion, since=promotion.at)
    transition(slot, SLOT_MACHINE, SlotState.CHAMPION, state_reason="")
    log.append(slot.team.stream, "champion.changed", {
        "slot": slot.pk, "name": str(slot), "kernel": promotion.kernel_id, "previous": promotion.previous_id,
        "promotion": promotion.pk, "kind": promotion.kind,
    })


def _refuse(request: ReviewRequest, cause: str) -> None:
    request.refresh_from_db()
    if request.state not in REQUEST_OPEN:
        return
    with recording(*streams_of(request)) as log:
        request = _locked(request)
        if request.state == RequestState.VERIFYING:
            close(request, RequestState.STALE, log, code="refused", cause=cause)
            announce(request, log, "promotion.refused", {"cause": cause})


def gate_sweep() -> None:
    """What the loop does every second or two: stale requests, verifications to start, verifications that ended.

    Each request stands in its own transactions; one that cannot be handled leaves the others alone.
    """
    from apps.reviews.services.rollback import verifications_sweep

    rows = ReviewRequest.objects.filter(state__in=REQUEST_OPEN).select_related(
        "team", "slot__team", "slot__operator", "slot__hardware", "campaign__team", "kernel", "verdict", "verify_job"
    )
    for request in rows.order_by("id"):
        try:
            _sweep_one(request)
        except GateRefused:
            continue  # it waits for what the sentence says; the page shows the same requirement
    verifications_sweep()


def _sweep_one(request: ReviewRequest) -> None:
    if request.state == RequestState.VERIFYING:
        promotion_finish(request=request)
        return
    if stale_check(request):
        return
    missing = gate.unmet(request, without=("verification",))  # read first: what waits takes no lock
    lost = [line for line in missing if line.code == "approvals"]
    if request.state == RequestState.APPROVED and lost and request.raised_by_id is None:
        _close_lost(request, lost[0])
    elif not missing:
        promotion_start(request=request)
    elif request.state == RequestState.OPEN and all(line.code in AFTER_APPROVAL for line in missing):
        with transaction.atomic():  # a thread was resolved after the last approval
            approved_check(_locked(request))


def _close_lost(request: ReviewRequest, line: gate.Requirement) -> None:
    """An approved request whose approvals no longer count (a role was taken away) goes stale."""
    with recording(*streams_of(request)) as log:
        request = _locked(request)
        if request.state == RequestState.APPROVED:
            close(request, RequestState.STALE, log, code="approval_lost",
                  cause=f"An approval no longer counts. {line.sentence}")


def gate_prepare() -> list[str]:
    """At every start: write the switches, and name the triggers that do not stand (promotions stop meanwhile)."""
    from apps.reviews import triggers

    with transaction.atomic():
        switches_write()
    return triggers.missing()


__all__ = ["crown", "gate_prepare", "gate_sweep", "promotion_finish", "promotion_start", "switches_write"]
