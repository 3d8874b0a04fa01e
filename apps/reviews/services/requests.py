"""Opening review requests, and closing them other than by a decision."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from apps.audit.services import audit_record
from apps.bridge import api
from apps.campaigns.jobs.services import job_cancel
from apps.campaigns.models import Campaign
from apps.campaigns.services import tell
from apps.core.errors import Invalid, MovedOn, Refused
from apps.core.transitions import transition
from apps.kernels.choices import SlotState
from apps.kernels.models import Kernel, Slot, Verdict
from apps.reviews import gate, policies
from apps.reviews.binding import BytesDiffer, GateTier, conditions_now, gate_tier, staleness
from apps.reviews.choices import REQUEST_MACHINE, REQUEST_OPEN, RequestState
from apps.reviews.models import ReviewRequest
from apps.stream.services import Log, recording
from apps.teams import policies as team_policies
from apps.teams.models import User

SEEN_LATE = ("regressions", "suspicious")
"""Requirements that a verification can end a request by, because it shows more than what was approved."""


def streams_of(request: ReviewRequest) -> list[str]:
    """Streams that a change of this request is told on."""
    return [request.team.stream, *([request.campaign.stream] if request.campaign is not None else [])]


def announce(request: ReviewRequest, log: Log, kind: str, data: dict[str, Any]) -> None:
    """An event about a request on its team's and its campaign's streams."""
    for stream in streams_of(request):
        log.append(stream, kind, {"request": request.pk, "campaign": request.campaign_id, "slot": str(request.slot),
                                  "kernel": request.kernel_id, "state": request.state, **data})


def review_open(
    *, campaign: Campaign, kernel: Kernel, verdict: Verdict, person: User | None = None, because: str = "",
) -> ReviewRequest:
    """Ask for a promotion of ``kernel``. ``person`` ``None``: the engine asks on a plateau or at the end.

    A light change of a team that lets these promote by themselves is approved at once and goes on to verification.

    Raises:
        Refused: the person may not; a veto stands; another request of the campaign is being reviewed.
        Invalid: the verdict cannot carry a promotion.
    """
    if person is not None:
        why = team_policies.may_run_campaigns(person, campaign.team)
        if why:
            raise Refused(why)
    slot = campaign.slot
    tier = _tier(slot, kernel)
    _usable(slot, kernel, verdict, tier)
    if verdict.goal_digest != campaign.goal_digest:
        raise Invalid("The verdict was made under another goal, whose limits and tolerances may differ. Order one "
                      "under this campaign's goal.", key="verdict")
    with recording(campaign.stream, campaign.team.stream) as log:
        Slot.objects.select_for_update().get(pk=slot.pk)
        _make_room(campaign, kernel, log)
        conditions = conditions_now(slot, campaign, verdict)
        auto = _goes_by_itself(slot, tier, verdict)
        request = ReviewRequest.objects.create(
            team=campaign.team, slot=slot, campaign=campaign, kernel=kernel, champion=tier.champion, base=tier.base,
            verdict=verdict, gate_tier=tier.tier, tier_why=list(tier.why), policy_version=campaign.team.policy_version,
            conditions=conditions, conditions_digest=api.digest_document(conditions), opened_at=timezone.now(),
            opened_by=person, opened_because=because, answers=_answered(campaign), auto=auto,
        )
        announce(request, log, "review.opened", {"tier": tier.tier, "by": person.name if person else "system",
                                                 "because": because})
        audit_record(verb="review.opened", subject=request, actor=person, team=request.team, digest=kernel.digest,
                     after=RequestState.OPEN, reason=because, data={"gate_tier": tier.tier, "auto": auto})
        if kernel.pk == campaign.incumbent_id or person is not None:
            _tell_opened(campaign, kernel, person, log)
        if auto:
            transition(request, REQUEST_MACHINE, RequestState.APPROVED)
    return request


def verdict_to_review(campaign: Campaign) -> Verdict:
    """The verdict that a person's request about the incumbent shows: the one of its round, or a later verification
    that passed and ended its request by nothing but what it showed and no approver had seen. With the older verdict
    the next request would end in the same way. A verification whose request went stale for anything else is no choice:
    it must neither outdate a failure that was recorded before it nor stand for a less pleasant verdict.

    Raises:
        Invalid: nothing was measured yet.
    """
    verdict = campaign.incumbent_verdict
    if campaign.incumbent is None or verdict is None:
        raise Invalid("Nothing was measured yet, so there is nothing to submit. Wait for the first verdict.")
    ended = ReviewRequest.objects.filter(
        campaign=campaign, kernel=campaign.incumbent, state=RequestState.STALE, cause_code__in=SEEN_LATE,
        verify_verdict__outcome="passed", verify_verdict__goal_digest=campaign.goal_digest,
        verify_verdict__created_at__gt=verdict.created_at,
    ).select_related("verdict", "verify_verdict").order_by("-verify_verdict__id")
    return next((one.verify_verdict for one in ended if one.verify_verdict is not None
                 and _shows_more(one.verify_verdict, one.verdict)), verdict)


def _shows_more(later: Verdict, earlier: Verdict) -> bool:
    """Whether a person has to look at something in ``later`` that ``earlier`` does not show."""
    return bool(set(later.regressions) - set(earlier.regressions) or (later.suspicious and not earlier.suspicious))


def _tier(slot: Slot, kernel: Kernel) -> GateTier:
    try:
        return gate_tier(slot, kernel)
    except (BytesDiffer, api.BridgeError) as error:
        raise Invalid(f"The gate tier of this kernel cannot be computed: {error}", code="tier_unknown") from error


def _usable(slot: Slot, kernel: Kernel, verdict: Verdict, tier: GateTier) -> None:
    if tier.base.normal_digest == kernel.normal_digest:
        raise Invalid("This kernel is the champion already, apart from names and comments."
                      if tier.champion else "This kernel is the shipped baseline, apart from names and comments.",
                      code="no_change")
    standing = gate.standing_vetoes(slot.team_id, kernel)
    if standing:
        raise Refused(f"{standing[0].by.name} vetoed this kernel: {standing[0].decision.comment} It can be submitted "
                      "again once that veto is lifted.", code="veto_stands")
    if verdict.kernel_id != kernel.pk or verdict.team_id != slot.team_id:
        raise Invalid("The verdict is not one of your team on this kernel.", key="verdict")
    if verdict.foreign:
        raise Invalid("The verdict was imported. Order a fresh one here; imported ones are no evidence.", key="verdict")
    if verdict.outcome != "passed" or not verdict.evidence:
        raise Invalid(f"The verdict says {verdict.outcome}" + (" but nothing was timed" if not verdict.evidence else "")
                      + ": only passed and timed kernels are reviewed.", key="verdict")
    if (verdict.hardware, verdict.workload) != (slot.hardware.name, slot.workload):
        raise Invalid(f"The verdict is about {verdict.hardware} and workload {verdict.workload}, the slot about "
                      f"{slot.hardware.name} and {slot.workload}.", key="verdict")


def _make_room(campaign: Campaign, kernel: Kernel, log: Log) -> None:
    """At most one open request per campaign; a better candidate replaces it only while nobody started reviewing."""
    present = ReviewRequest.objects.filter(campaign=campaign, state__in=REQUEST_OPEN).first()
    if present is None:
        return
    if present.kernel_id == kernel.pk:
        raise Refused(f"{present} asks for exactly this kernel already.", code="already_open")
    started = (present.decisions.exists() or present.threads.exists() or present.viewed_marks.exists()
               or present.state != RequestState.OPEN)
    if started:
        raise Refused(f"{present} of this campaign is being reviewed; it ends first, or is withdrawn by a person.",
                      code="already_open")
    close(present, RequestState.WITHDRAWN, log, code="replaced", cause="Replaced by a better candidate, by system.")


def _answered(campaign: Campaign) -> ReviewRequest | None:
    """The latest request of the campaign, when it asked for changes: the new one answers it."""
    last = ReviewRequest.objects.filter(campaign=campaign).order_by("-id").first()
    return last if last is not None and last.state == RequestState.CHANGES_REQUESTED else None


def _goes_by_itself(slot: Slot, tier: GateTier, verdict: Verdict) -> bool:
    return bool(
        slot.team.light_auto_promote and tier.tier in ("none", "light") and not verdict.suspicious
        and not verdict.regressions and slot.state != SlotState.QUARANTINED
        and not ReviewRequest.objects.filter(slot=slot, state__in=REQUEST_OPEN).exists()
    )


def _tell_opened(campaign: Campaign, kernel: Kernel, person: User | None, log: Log) -> None:
    row = campaign.rounds.filter(kernel=kernel).order_by("number").first()
    document = api.engine_result("ReviewOpened", round=row.number if row else 0, kernel=kernel.digest,
                                 person=person.name if person else None)
    tell(campaign, document, log)


def close(
    request: ReviewRequest, state: str, log: Log, *, code: str, cause: str, actor: User | None = None, **changes: Any
) -> ReviewRequest:
    """End a request inside an open transaction, with its event and trail entry. Its verification is cancelled."""
    before = request.state
    transition(request, REQUEST_MACHINE, state, cause_code=code, cause=cause, closed_at=timezone.now(), **changes)
    if request.verify_job is not None:
        job_cancel(job=request.verify_job, reason=cause)
    kind = "review.stale" if state == RequestState.STALE else "review.closed"
    announce(request, log, kind, {"cause": cause, "code": code, "by": actor.name if actor else "system"})
    audit_record(verb=kind, subject=request, actor=actor, team=request.team, digest=request.kernel_id, before=before,
                 after=state, reason=cause)
    return request


def stale_check(request: ReviewRequest) -> bool:
    """Close a request whose bindings no longer hold; whether it was (or is) stale."""
    if request.state not in REQUEST_OPEN:
        return request.state == RequestState.STALE
    cause = staleness(request)
    if cause is None:
        return False
    with recording(*streams_of(request)) as log:
        request.refresh_from_db()
        if request.state in REQUEST_OPEN:
            close(request, RequestState.STALE, log, code=cause.code, cause=cause.text)
    return True


def review_withdraw(*, request: ReviewRequest, person: User, reason: str) -> ReviewRequest:
    """Take a request back before it is verified.

    Raises:
        Refused, MovedOn, ImpossibleTransition: with the sentence; nothing was changed.
    """
    why = policies.may_withdraw(person, request)
    if why:
        raise Refused(why)
    with recording(*streams_of(request)) as log:
        request.refresh_from_db()
        return close(request, RequestState.WITHDRAWN, log, code="withdrawn",
                     cause=reason.strip() or f"{person.name} withdrew it.", actor=person)


def review_raise_tier(*, request: ReviewRequest, person: User, tier: str, reason: str) -> ReviewRequest:
    """Ask for more than the computed tier does. Approvals so far stay and count towards the higher number.

    Raises:
        Refused: no reviewer, or it would not be higher. Invalid: no reason, unknown tier.
    """
    if tier not in api.TIERS:
        raise Invalid(f"'{tier}' is no tier. Tiers: {', '.join(api.TIERS)}.", key="tier")
    if not reason.strip():
        raise Invalid("Raising a tier needs a reason that the others can read.", key="reason")
    with recording(*streams_of(request)) as log:
        request.refresh_from_db()
        why = policies.may_raise_tier(person, request, tier)
        if why:
            raise Refused(why)
        if request.auto or (request.state == RequestState.APPROVED and request.verify_job_id is not None):
            raise MovedOn(f"{request} goes on to its verification already; veto it instead.")
        before = policies.effective_tier(request)
        ReviewRequest.objects.filter(pk=request.pk, version=request.version).update(
            raised_tier=tier, raised_by=person, raised_reason=reason, version=request.version + 1
        )
        request.refresh_from_db()
        audit_record(verb="review.tier_raised", subject=request, actor=person, team=request.team,
                     digest=request.kernel_id, before=before, after=tier, reason=reason)
        announce(request, log, "review.decided", {"decision": "raise_tier", "tier": tier, "by": person.name})
    return request
