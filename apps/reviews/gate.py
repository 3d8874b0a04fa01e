"""The gate: one list of requirements, used by the page and by the transaction that promotes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings

from apps.bridge import api
from apps.campaigns.canary.selectors import drift_gap, drift_windows, in_doubt
from apps.campaigns.choices import JobState
from apps.campaigns.jobs.workers import selftest_gap
from apps.kernels.choices import SlotState
from apps.kernels.models import Kernel, Slot, Verdict
from apps.reviews import history, policies, triggers
from apps.reviews.binding import BytesDiffer, intact, normal_digests, staleness
from apps.reviews.choices import DecisionKind, RequestState, RequirementState
from apps.reviews.models import Decision, ReviewRequest, Veto
from apps.reviews.seals import is_sealed
from apps.teams.models import User
from apps.teams.selectors import reviewer_grant

MET, NOT_MET = RequirementState.MET, RequirementState.NOT_MET
NOT_APPLICABLE, ERROR = RequirementState.NOT_APPLICABLE, RequirementState.ERROR
EVIDENCE = ("bounded", "profiled")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of the gate: ``state`` is ``met``, ``not_met``, ``not_applicable`` or ``error`` (which is not met)."""

    code: str
    state: str
    sentence: str

    @property
    def blocks(self) -> bool:
        """Whether it keeps the kernel out."""
        return self.state in (NOT_MET, ERROR)


def standing_decisions(request: ReviewRequest) -> list[Decision]:
    """The last decision of each person, in order; earlier ones are superseded, what nobody decided here is left out."""
    last: dict[int, Decision] = {}
    for decision in request.decisions.select_related("user", "grant").order_by("id"):
        if is_sealed(decision):
            last[decision.user_id] = decision
    return sorted(last.values(), key=lambda decision: decision.pk)


def counted_approvals(request: ReviewRequest) -> list[Decision]:
    """Approvals that count now: of these bytes, by entitled people, each once. Recomputed every time."""
    kept_out = policies.contributors(request)
    return [
        decision for decision in standing_decisions(request)
        if decision.kind == DecisionKind.APPROVE
        and decision.kernel_digest == request.kernel_id
        and (settings.DEMO or not decision.demo)
        and _entitled(decision, request)
        and (decision.user_id not in kept_out
             or (decision.self_review and policies.self_review_allowed(decision.user, request)))
    ]


def _entitled(decision: Decision, request: ReviewRequest) -> bool:
    grant = reviewer_grant(decision.user, request.team, before=request.opened_at)
    return grant is not None and grant.pk == decision.grant_id


def standing_vetoes(team_id: int, kernel: Kernel) -> list[Veto]:
    """Vetoes on a kernel's normalised tree that nobody lifted."""
    rows = Veto.objects.filter(team_id=team_id, normal_digest__in=normal_digests(kernel), lift__isnull=True)
    return list(rows.select_related("by", "team", "decision__request"))


def requirements(request: ReviewRequest) -> list[Requirement]:
    """All requirements of a request, in the order in which they are shown. Whatever cannot be computed is an error,
    and an error is not met."""
    checks: tuple[tuple[str, Callable[[ReviewRequest], Requirement]], ...] = (
        ("bytes", _bytes), ("verdict", _verdict), ("fresh", _fresh), ("approvals", _approvals), ("veto", _veto),
        ("threads", _threads), ("regressions", _regressions), ("suspicious", _suspicious), ("selftest", _selftest),
        ("drift", _drift), ("triggers", _triggers), ("verification", _verification),
    )
    return [_safely(code, check, request) for code, check in checks]


def _safely(code: str, check: Callable[[ReviewRequest], Requirement], request: ReviewRequest) -> Requirement:
    try:
        return check(request)
    except (BytesDiffer, api.BridgeError) as error:
        return Requirement(code, ERROR, f"Could not be checked, so it is not met: {error}")


def unmet(request: ReviewRequest, *, without: tuple[str, ...] = ()) -> list[Requirement]:
    """Requirements that keep the kernel out, those named in ``without`` left aside."""
    return [line for line in requirements(request) if line.blocks and line.code not in without]


def _bytes(request: ReviewRequest) -> Requirement:
    intact(request.kernel)
    named = request.verdict.document.get("kernel")
    if named != request.kernel_id or request.verdict.kernel_id != request.kernel_id:
        return Requirement("bytes", NOT_MET, "The verdict is about other bytes than those under review.")
    return Requirement("bytes", MET, f"The verdict is about exactly these bytes ({request.kernel.short}); their "
                                     "digest was computed again here.")


def _verdict(request: ReviewRequest) -> Requirement:
    verdict = request.verdict
    problems = [text for wrong, text in (
        (verdict.foreign, "it was imported; only verdicts made here count"),
        (verdict.outcome != "passed", f"its outcome is {verdict.outcome}"),
        (verdict.outcome == "passed" and not verdict.evidence, "nothing was timed"),
        (bool(verdict.evidence) and verdict.evidence not in EVIDENCE, f"its times are only {verdict.evidence}"),
        (bool(verdict.evidence) and not verdict.recomputed, "its comparison could not be recomputed from raw samples"),
        (verdict.isolation < settings.REQUIRED_ISOLATION,
         f"isolation level {verdict.isolation} was proved, {settings.REQUIRED_ISOLATION} is needed"),
        (verdict.hardware != request.slot.hardware.name, f"it belongs to {verdict.hardware}"),
        (verdict.workload != request.slot.workload, f"it was measured on workload {verdict.workload}"),
    ) if wrong]
    if problems:
        return Requirement("verdict", NOT_MET, f"The verdict is no evidence: {'; '.join(problems)}.")
    return Requirement("verdict", MET, f"Passed and timed on {verdict.hardware} ({verdict.evidence}, isolation level "
                                       f"{verdict.isolation}); the comparison was recomputed from the raw samples.")


def _fresh(request: ReviewRequest) -> Requirement:
    if request.state in (RequestState.PROMOTED,):
        return Requirement("fresh", NOT_APPLICABLE, "Promoted: what it was bound to held at that moment.")
    if request.state == RequestState.STALE:
        return Requirement("fresh", NOT_MET, f"Stale: {request.cause}")
    cause = staleness(request)
    if cause is not None:
        return Requirement("fresh", NOT_MET, f"Stale: {cause.text}")
    return Requirement("fresh", MET, "Champion, policy, goal, workload, operator, evaluator and environment are those "
                                     "it was opened with.")


def _approvals(request: ReviewRequest) -> Requirement:
    tier = policies.effective_tier(request)
    if request.auto and not (request.team.light_auto_promote and tier in ("none", "light")):
        return Requirement("approvals", NOT_MET, f"It is marked to go by itself, but it is a {tier} change or the team "
                                                 "does not let these.")
    if request.auto and Slot.objects.filter(pk=request.slot_id, state=SlotState.QUARANTINED).exists():
        return Requirement("approvals", NOT_MET, "It is marked to go by itself, but it is a light change of a champion "
                                                 "that was quarantined: a person must look.")
    if request.auto:
        return Requirement("approvals", NOT_APPLICABLE, "Light change; the team lets these promote by themselves.")
    needed = policies.required_approvals(request.team, tier)
    counted = counted_approvals(request)
    names = ", ".join(decision.user.name + (" (self-review)" if decision.self_review else "") for decision in counted)
    raised = f", raised from {request.gate_tier} by {request.raised_by.name}" if request.raised_by else ""
    head = f"{tier.capitalize() if tier != 'none' else 'No change'} tier{raised}: {len(counted)} of {needed} approvals"
    if len(counted) >= needed:
        return Requirement("approvals", MET, f"{head}, by {names}, on {request.kernel.short}.")
    able = [p.name for p in policies.eligible(request) if p.pk not in {d.user_id for d in counted}]
    who = f" {', '.join(able)} may approve." if able else (
        " Nobody else may approve it now: reviewers since before it opened who are no contributors are needed.")
    return Requirement("approvals", NOT_MET, head + (f", by {names}." if names else ".") + who)


def _veto(request: ReviewRequest) -> Requirement:
    standing = standing_vetoes(request.team_id, request.kernel)
    if standing:
        return Requirement("veto", NOT_MET, f"{standing[0].by.name} vetoed this kernel: "
                                            f"{standing[0].decision.comment}")
    return Requirement("veto", MET, "No veto stands on its normalised form.")


def _threads(request: ReviewRequest) -> Requirement:
    blocking = request.threads.filter(blocking=True)
    waiting = blocking.filter(resolved_at__isnull=True).count()
    if waiting:
        return Requirement("threads", NOT_MET, f"{waiting} blocking thread{'s' if waiting > 1 else ''} not resolved.")
    if not blocking.exists():
        return Requirement("threads", NOT_APPLICABLE, "No blocking thread was opened.")
    return Requirement("threads", MET, "All blocking threads are resolved.")


def regressions_of(request: ReviewRequest) -> list[str]:
    """Shapes that an approver must accept by name: those of the verdict and of the verification."""
    latest = request.verify_verdict.regressions if request.verify_verdict is not None else []
    return sorted({*request.verdict.regressions, *latest})


def _regressions(request: ReviewRequest) -> Requirement:
    shapes = regressions_of(request)
    if not shapes:
        return Requirement("regressions", NOT_APPLICABLE, "No shape is clearly slower.")
    ticked = {shape for decision in counted_approvals(request) for shape in decision.ticked}
    left = [shape for shape in shapes if shape not in ticked]
    if left:
        return Requirement("regressions", NOT_MET, f"Clearly slower on {', '.join(left)}: an approver must accept "
                                                   "each by name.")
    return Requirement("regressions", MET, f"An approver accepted the slower shapes by name: {', '.join(shapes)}.")


def _suspicious(request: ReviewRequest) -> Requirement:
    latest = request.verify_verdict
    if latest is not None and latest.suspicious and not request.verdict.suspicious:
        return Requirement("suspicious", NOT_MET, "The verification found a suspicious win that no approver has seen: "
                           + "; ".join(latest.document.get("suspicious", [])))
    if not request.verdict.suspicious:
        return Requirement("suspicious", NOT_APPLICABLE, "Nothing about the win is suspicious.")
    why = "; ".join(request.verdict.document.get("suspicious", []))
    if request.auto or not counted_approvals(request):
        return Requirement("suspicious", NOT_MET, f"Suspicious win, so a person must look: {why}")
    return Requirement("suspicious", MET, f"A person looked at the suspicious win: {why}")


def _selftest(request: ReviewRequest) -> Requirement:
    verdict = request.verify_verdict or request.verdict
    gap = selftest_gap(verdict.environment_class, verdict.isolation, request.slot.backend)
    return Requirement("selftest", NOT_MET if gap else MET, gap or "The evaluator's self-test passed here.")


def verified_in_drift(request: ReviewRequest) -> bool:
    """Whether the verification that is to carry the promotion was measured while the device drifted."""
    verdict = request.verify_job.verdict if request.verify_job is not None else None
    return (request.state == RequestState.VERIFYING and verdict is not None
            and in_doubt(drift_windows(request.slot.hardware.name), verdict.created_at))


def _drift(request: ReviewRequest) -> Requirement:
    gap = drift_gap(request.slot.hardware.name)
    if gap is None and verified_in_drift(request):
        gap = "The verification was measured while the device drifted; it is measured anew."
    return Requirement("drift", NOT_MET if gap else MET, gap or "The device takes for its frozen baseline what it took "
                                                                "before, within noise.")


def _triggers(_: ReviewRequest) -> Requirement:
    gone = triggers.missing()
    if gone:
        return Requirement("triggers", NOT_MET, f"{len(gone)} of the database's own guards are missing or altered; "
                                                "run `python manage.py migrate`.")
    broken = history.uncarried()
    if broken:
        return Requirement("triggers", NOT_MET, " ".join(broken))
    return Requirement("triggers", MET, "The database's own guards stand, and approvals carry every champion.")


def _verification(request: ReviewRequest) -> Requirement:
    job = request.verify_job
    if job is None:
        return Requirement("verification", NOT_MET, "Measured once more with fresh seeds against the present champion, "
                                                    "after the approvals.")
    if job.state in (JobState.QUEUED, JobState.LEASED):
        return Requirement("verification", NOT_MET, "The verification is queued." if job.state == JobState.QUEUED
                           else "The verification is running.")
    problem = verification_problem(request)
    if problem:
        return Requirement("verification", NOT_MET, problem)
    return Requirement("verification", MET, "Verified once more: passed and faster than the "
                       + ("present champion." if request.champion_id else "baseline."))


def verification_problem(request: ReviewRequest) -> str | None:
    """Why the ended verification does not carry the promotion, with its numbers; ``None`` when it does."""
    job = request.verify_job
    verdict = job.verdict if job is not None else None
    if job is None or verdict is None:
        return f"The verification ended without a verdict: {job.error if job is not None else 'it was never ordered.'}"
    role = "champion" if request.champion_id else "baseline"
    if verdict.outcome != "passed":
        return f"The verification says {verdict.outcome}: {first_reason(verdict)}"
    if verdict.compared_with != role or verdict.against.get(role) != request.base_id:
        return f"The verification was not measured against the present {role}."
    if verdict.comparison != "faster":
        word = verdict.comparison.replace("_", " ")
        return f"The verification says '{word}' against the {role}: {numbers(verdict.document, role)}."
    if verdict.foreign or not verdict.recomputed or verdict.evidence not in EVIDENCE:
        return "The verification's times are no evidence: bounded by the judge's clock and recomputed from samples."
    if verdict.isolation < settings.REQUIRED_ISOLATION:
        return f"The verification ran at isolation level {verdict.isolation}; {settings.REQUIRED_ISOLATION} is needed."
    return None


def first_reason(verdict: Verdict) -> str:
    """The sentence of a verdict's first reason."""
    reasons = verdict.document.get("reasons") or [{}]
    return str(reasons[0].get("text", ""))


def numbers(document: dict, role: str) -> str:
    """The overall ratio against ``role`` in words, ``not timed`` where there is none."""
    timing = document.get("timing") or {}
    ratio = timing.get("overall", {}).get(role)
    if ratio is None:
        return "not timed"
    return f"{ratio['ratio']:.3f}× [{ratio['low']:.3f}, {ratio['high']:.3f}], noise {timing.get('noise', 0.0):.1%}"


def why_not(user: User | None, request: ReviewRequest, kind: str) -> str | None:
    """Why this person may not decide ``kind`` on this request now; ``None`` when they may."""
    return policies.may_decide(user, request, kind)
