"""Everything the review page shows, in the order a reviewer needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest

from apps.bridge import api
from apps.campaigns.canary.selectors import drift_windows, in_doubt
from apps.campaigns.models import Job, Round
from apps.campaigns.screens.round import findings_of, text_of
from apps.campaigns.screens.stepper import job_steps
from apps.core.plotting import to_json
from apps.kernels.models import Kernel
from apps.kernels.plots import distribution
from apps.kernels.screens.sheet import Sheet
from apps.kernels.screens.verdict.profile import ProfileSheet, profile_sheet
from apps.kernels.screens.verdicts import sheet_of
from apps.reviews import gate, policies
from apps.reviews.choices import REQUEST_OPEN, DecisionKind
from apps.reviews.diffing import split_diff
from apps.reviews.gate import Requirement
from apps.reviews.models import Decision, ReviewRequest, Thread, ViewedMark
from apps.reviews.screens import asked
from apps.reviews.selectors import (
    approvals_of,
    decisions_of,
    gate_requirements,
    regressions_of,
    threads_of,
    vetoes_on,
)
from apps.stream.selectors import head
from apps.teams import policies as team_policies
from apps.teams.sessions import is_fresh, reauthenticated_at

TITLES = {
    "bytes": "Verified on these bytes",
    "verdict": "The verdict is evidence",
    "fresh": "Nothing changed underneath",
    "approvals": "Approvals",
    "veto": "No veto",
    "threads": "Blocking threads",
    "regressions": "Slower shapes",
    "suspicious": "Suspicious win",
    "selftest": "Evaluator trusted",
    "drift": "Device steady",
    "triggers": "Database guards",
    "verification": "Verified once more",
}
ITEMS = ("timing", "correctness", "resources", "findings", "agent")


@dataclass(slots=True)
class Attempt:
    """What a person just tried to send: shown again when it was not recorded."""

    text: str = ""
    refusal: Any = None
    ticked: list[str] = field(default_factory=list)
    line: str = ""
    side: str = "new"


@dataclass(frozen=True, slots=True)
class Act:
    """One button of the decision bar with the sentence that keeps it off."""

    kind: str
    word: str
    icon: str
    tone: str
    why: str | None


def profile_of(sheet: Sheet | None, row: Round | None) -> ProfileSheet | None:
    """What binds the kernel: by the verdict under review, else by the one of the round that made it incumbent."""
    found = sheet.profile if sheet else None
    if found is None and row is not None and row.verdict is not None:
        found = profile_sheet(row.verdict.document)
    return found


def review_context(request: HttpRequest, review: ReviewRequest, attempt: Attempt | None = None) -> dict[str, Any]:
    """The whole page."""
    user: Any = request.user
    goal = review.campaign.goal if review.campaign else None
    sheet = named(sheet_of(review.verdict, goal=goal, samples=True), review)
    counted = approvals_of(review)
    lines = gate_requirements(review)
    applicable = [line for line in lines if line.state != "not_applicable"]
    threads = list(threads_of(review))
    base, shown_base = diff_base(request, review)
    findings = findings_of(review.verdict.document)
    round_row = (
        Round.objects.filter(campaign=review.campaign, kernel=review.kernel).first() if review.campaign else None
    )
    acts = acts_of(user, review)
    return {
        "review": review,
        "slot": review.slot,
        "verdict": review.verdict,
        "sheet": sheet,
        "profile": profile_of(sheet, round_row),
        "drifted": in_doubt(drift_windows(review.slot.hardware.name), review.verdict.created_at),
        "findings": findings,
        "asked": asked.facts(review, sheet),
        "tier": policies.effective_tier(review),
        "needed": policies.required_approvals(review.team, policies.effective_tier(review)),
        "gate": [{"line": line, "title": TITLES.get(line.code, line.code)} for line in lines],
        "gate_met": sum(line.state == "met" for line in applicable),
        "gate_all": len(applicable),
        "counted": counted,
        "decisions": decision_rows(review, counted),
        "round": round_row,
        "turn": whose_turn(user, review, counted, lines),
        "acts": acts,
        "approved": own_approval(user, counted, lines),
        "why_off": next((one.why for one in acts if one.why), None),
        "why_not_comment": team_policies.may_comment(user, review.team),
        "regressions": regressions_of(review),
        "fresh": is_fresh(reauthenticated_at(request)),
        "diff": diff_of(base, review, threads, findings, user),
        "diff_base": base,
        "shown_base": shown_base,
        "threads": [thread for thread in thread_rows(threads, user, review) if thread["thread"].line is None],
        "open_threads": sum(one.resolved_at is None for one in threads),
        "blocking": sum(one.blocking and one.resolved_at is None for one in threads),
        "thread_count": len(threads),
        "raise_to": [tier for tier in ("medium", "heavy") if policies.may_raise_tier(user, review, tier) is None],
        "why_not_raise": policies.may_raise_tier(user, review, "heavy"),
        "why_not_withdraw": policies.may_withdraw(user, review),
        "vetoes": [
            {"veto": veto, "why_not": policies.may_lift(user, veto)} for veto in vetoes_on(review.team, review.kernel)
        ],
        "seen": set(ViewedMark.objects.filter(request=review, user=user).values_list("item", flat=True)),
        "items": ITEMS,
        "attempt": attempt or Attempt(),
        "open": review.state in REQUEST_OPEN,
        "job": verify_job(review),
        "next_request": review.answered_by.order_by("id").first(),
        "figure": to_json(distribution(sheet.sides, sheet.role_word)) if sheet and sheet.sides else None,
        "verify_sheet": sheet_of(review.verify_verdict, goal=goal),
        "claim": ((round_row.entry or {}).get("agent_claim") if round_row else None),
        "stream": review.state in REQUEST_OPEN or None,
        "stream_head": head(review.team.stream),
    }


def named(sheet: Sheet | None, review: ReviewRequest) -> Sheet | None:
    """The sheet with the other side called what the request calls it: a round's incumbent may be the baseline."""
    if sheet is not None and review.verdict.against.get(sheet.role) == review.base_id:
        sheet.opponent = "champion" if review.champion_id else "baseline"
    return sheet


def acts_of(user: Any, review: ReviewRequest) -> list[Act]:
    """The decisions with what keeps each off."""
    return [
        Act(kind, word, icon, tone, gate.why_not(user, review, kind))
        for kind, word, icon, tone in (
            (DecisionKind.REQUEST_CHANGES, "Request changes", "undo", "warn"),
            (DecisionKind.REJECT, "Reject", "ban", "bad"),
            (DecisionKind.VETO, "Veto", "lock", "bad"),
            (DecisionKind.APPROVE, "Approve", "check", "ok"),
        )
    ]


def own_approval(user: Any, counted: Sequence[Decision], lines: Sequence[Requirement]) -> Decision | None:
    """The approval of this person that counts, unless it lacks a slower shape that an approver must still accept."""
    if any(line.code == "regressions" and line.state == "not_met" for line in lines):
        return None
    return next((row for row in counted if row.user_id == user.pk), None)


def decision_rows(review: ReviewRequest, counted: list[Decision]) -> list[dict[str, Any]]:
    """Every decision, superseded ones marked; an approval that does not count says so."""
    rows = list(decisions_of(review))
    last = {row.user_id: row.pk for row in rows}
    counting = {row.pk for row in counted}
    return [
        {
            "decision": row,
            "superseded": last[row.user_id] != row.pk,
            "counts": row.kind != DecisionKind.APPROVE or row.pk in counting,
        }
        for row in rows
    ]


def whose_turn(
    user: Any, review: ReviewRequest, counted: list[Decision], lines: Sequence[Requirement] = ()
) -> dict[str, Any]:
    """The banner: whose turn it is, in one sentence."""
    if review.state not in REQUEST_OPEN:
        return {"mine": False, "text": ""}
    if review.state == "verifying" or (review.state == "approved" and review.verify_job_id):
        return {
            "mine": False,
            "text": "Approved: it is measured once more with fresh seeds against the present champion.",
        }
    if review.state == "approved":
        unmet = [line.sentence for line in lines
                 if line.state in ("not_met", "error") and line.code != "verification"]
        text = (f"Approved. The verification is not ordered yet. {' '.join(unmet)}" if unmet else
                "Approved: the verification is ordered in a moment.")
        return {"mine": False, "text": text}
    missing = policies.required_approvals(review.team, policies.effective_tier(review)) - len(counted)
    able = [person for person in policies.eligible(review) if person.pk not in {row.user_id for row in counted}]
    if any(person.pk == user.pk for person in able) and missing > 0:
        after = " Promotion starts with the last one." if missing == 1 else ""
        return {
            "mine": True,
            "text": f"{missing} approval{'s' if missing > 1 else ''} missing; you may give one.{after}",
        }
    names = ", ".join(person.name for person in able if person.pk != user.pk)
    if missing > 0:
        return {
            "mine": False,
            "text": f"Waits for {names}."
            if names
            else "Waits for a reviewer, and nobody may decide it now: reviewers since before it opened who are no "
            "contributors are needed.",
        }
    return {"mine": False, "text": "The approvals are there; other requirements of the gate are open."}


def diff_base(request: HttpRequest, review: ReviewRequest) -> tuple[Kernel, str]:
    """What the left side shows: the base of the gate, or the revision that this one answers."""
    if request.GET.get("from") == "previous" and review.answers is not None:
        return review.answers.kernel, "previous"
    return review.base, "base"


def thread_rows(threads: list[Thread], user: Any, review: ReviewRequest) -> list[dict[str, Any]]:
    """Threads with who may resolve them."""
    return [
        {"thread": thread, "why_not_resolve": policies.may_resolve(user, thread.opened_by, review.team)}
        for thread in threads
    ]


def diff_of(
    base: Kernel, review: ReviewRequest, threads: list[Thread], findings: list[dict[str, Any]], user: Any
) -> Any:
    """The side-by-side diff with findings and threads pinned to their lines."""
    new_pins: dict[int, list[Any]] = {}
    old_pins: dict[int, list[Any]] = {}
    for finding in findings:
        if finding.get("line"):
            new_pins.setdefault(finding["line"], []).append({"kind": "finding", **finding})
    for row in thread_rows(threads, user, review):
        thread = row["thread"]
        if thread.line is None:
            continue
        pins = old_pins if thread.kernel_id == base.pk and base.pk != review.kernel_id else new_pins
        pins.setdefault(thread.line, []).append({"kind": "thread", **row})
    return split_diff(text_of(base), text_of(review.kernel), new_pins=new_pins, old_pins=old_pins)


def verify_job(review: ReviewRequest) -> dict[str, Any] | None:
    """The verification in progress with its stages."""
    job: Job | None = review.verify_job
    if job is None or job.state not in ("queued", "leased"):
        return None
    return {"job": job, "steps": job_steps(job)}


def tier_ranks() -> tuple[str, ...]:
    """Tiers in order."""
    return api.TIERS
