"""Deciding: approve, request changes, reject, veto; and lifting a veto. All by persons, in the browser."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from apps.audit.services import audit_record
from apps.bridge import api
from apps.campaigns.choices import CAMPAIGN_ENDED
from apps.campaigns.services import influence_add, tell
from apps.core.errors import Invalid, MovedOn, Refused
from apps.core.transitions import transition
from apps.reviews import gate, policies
from apps.reviews.choices import REQUEST_MACHINE, DecisionKind, RequestState
from apps.reviews.models import Decision, ReviewRequest, Veto, VetoLift
from apps.reviews.seals import seal
from apps.reviews.services.requests import announce, close, stale_check, streams_of
from apps.stream.services import Log, recording
from apps.teams.models import User
from apps.teams.selectors import reviewer_grant
from apps.teams.sessions import proof_check

ENDS = {
    DecisionKind.REQUEST_CHANGES: RequestState.CHANGES_REQUESTED,
    DecisionKind.REJECT: RequestState.REJECTED,
    DecisionKind.VETO: RequestState.VETOED,
}
AFTER_APPROVAL = ("verification", "selftest", "drift", "triggers")
"""Requirements that are waited for after the approvals, not before them."""


def review_decide(
    *, request: ReviewRequest, person: User, kind: str, shown_digest: str, shown_version: int,
    reauthenticated_at: datetime | None, comment: str = "", session_hash: str = "", ticked: list[str] | None = None,
) -> Decision:
    """Record what a person decided on the bytes shown to them.

    ``reauthenticated_at`` is when the session last proved the person (``teams.sessions.reauthenticated_at``).

    Raises:
        Refused: the rule that forbids it, and who may; or the proof of identity is older than 15 minutes.
        MovedOn: the request is not what was shown. Nothing was recorded.
        Invalid: a comment is missing, an unknown decision, a shape that is no regression.
    """
    if kind not in DecisionKind.values:
        raise Invalid(f"'{kind}' is no decision. Decisions: {', '.join(DecisionKind.values)}.", key="kind")
    comment = comment.strip()
    if kind != DecisionKind.APPROVE and not comment:
        raise Invalid("Say why: this decision needs a comment.", key="comment")
    proof_check(reauthenticated_at, "A decision")
    if stale_check(request):
        raise MovedOn(f"{request} is stale: {request.cause} Nothing was recorded.")
    with recording(*streams_of(request)) as log:
        request = _locked(request)
        _as_shown(request, shown_digest, shown_version)
        why = policies.may_decide(person, request, kind)
        if why:
            raise Refused(why)
        decision = _record(request, person, kind, comment, reauthenticated_at, session_hash, ticked or [])
        announce(request, log, "review.decided", {"decision": kind, "by": person.name, "comment": comment})
        if kind == DecisionKind.APPROVE:
            approved_check(request)
        else:
            _end(request, decision, log)
    request.refresh_from_db()
    return decision


def _locked(request: ReviewRequest) -> ReviewRequest:
    locked = ReviewRequest.objects.select_for_update(of=("self",)).select_related(
        "team", "slot__team", "slot__operator", "slot__hardware", "campaign__team", "kernel", "verdict", "verify_job"
    ).get(pk=request.pk)
    request.__dict__.update(locked.__dict__)
    return request


def _as_shown(request: ReviewRequest, digest: str, version: int) -> None:
    if digest != request.kernel_id or version != request.version:
        raise MovedOn(f"{request} moved since you opened it (it is {request.get_state_display()} now). Nothing was "
                      "recorded; your text is kept. Look again, then decide.")


def _record(
    request: ReviewRequest, person: User, kind: str, comment: str, proved_at: datetime | None, session_hash: str,
    ticked: list[str],
) -> Decision:
    known = gate.regressions_of(request)
    stray = [shape for shape in ticked if shape not in known]
    if stray:
        shapes = ", ".join(known) or "none"
        raise Invalid(f"{', '.join(stray)} is not among the slower shapes ({shapes}).", key="ticked")
    grant = reviewer_grant(person, request.team, before=request.opened_at)
    assert grant is not None and proved_at is not None  # the policy and the freshness check have just said so
    own = person.pk in policies.contributors(request)
    decision = Decision(
        request=request, user=person, grant=grant, kind=kind, comment=comment, kernel_digest=request.kernel_id,
        request_version=request.version, gate_tier=policies.effective_tier(request), ticked=ticked,
        reauthenticated_at=proved_at, session_hash=session_hash, demo=person.demo, self_review=own, at=timezone.now(),
    )
    decision.seal = seal(decision)
    decision.save()
    audit_record(
        verb=f"review.{kind}", subject=request, actor=person, team=request.team, digest=request.kernel_id,
        before=request.state, reason=comment, session_hash=session_hash,
        data={"decision": decision.pk, "ticked": ticked, "demo": person.demo, "self_review": own},
    )
    return decision


def approved_check(request: ReviewRequest) -> None:
    """Move an open request to ``approved`` once everything but the verification and its conditions is met."""
    if request.state == RequestState.OPEN and not gate.unmet(request, without=AFTER_APPROVAL):
        transition(request, REQUEST_MACHINE, RequestState.APPROVED)


def _end(request: ReviewRequest, decision: Decision, log: Log) -> None:
    word = decision.get_kind_display()
    close(request, ENDS[DecisionKind(decision.kind)], log, code=decision.kind, actor=decision.user,
          cause=f"{decision.user.name} decided to {word}: {decision.comment}")
    if decision.kind == DecisionKind.VETO:
        Veto.objects.create(team=request.team, normal_digest=request.kernel.normal_digest, decision=decision,
                            by=decision.user, at=decision.at)
    _tell_agent(request, decision, log)


def _tell_agent(request: ReviewRequest, decision: Decision, log: Log) -> None:
    """Quote the decision to the agent; whose comment a kernel is built from contributes to it (heavy)."""
    campaign = request.campaign
    if campaign is None or campaign.imported_from:
        return
    words = {DecisionKind.REQUEST_CHANGES: "changes_requested", DecisionKind.REJECT: "rejected",
             DecisionKind.VETO: "vetoed"}
    influence_add(campaign=campaign, user=decision.user, source=str(request))
    if campaign.state in CAMPAIGN_ENDED:
        return
    document = api.engine_result("ReviewDecided", kernel=request.kernel_id, decision=words[DecisionKind(decision.kind)],
                                 feedback=decision.comment, person=decision.user.name)
    tell(campaign, document, log)


def veto_lift(*, veto: Veto, person: User, reason: str) -> VetoLift:
    """End a veto with a reason. Approves nothing; the kernel may be submitted again and shows it.

    Raises:
        Refused: who may instead. Invalid: no reason.
    """
    why = policies.may_lift(person, veto)
    if why:
        raise Refused(why)
    if not reason.strip():
        raise Invalid("Lifting a veto needs a reason; it is shown on every later request of this kernel.", key="reason")
    with transaction.atomic():
        lift = VetoLift.objects.create(veto=veto, by=person, reason=reason.strip(), at=timezone.now())
        audit_record(verb="veto.lifted", subject=veto, actor=person, team=veto.team, digest=veto.normal_digest,
                     reason=reason)
    return lift
