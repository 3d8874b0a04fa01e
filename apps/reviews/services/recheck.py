"""A new evaluator version or environment class verifies every champion again, in the background."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from apps.campaigns.choices import PRIORITIES, JobPurpose, JobState
from apps.campaigns.jobs.models import Job
from apps.core.errors import AppError
from apps.kernels.choices import SlotState
from apps.kernels.models import Champion, Verdict
from apps.kernels.selectors import champion_of
from apps.reviews import gate
from apps.reviews.binding import BytesDiffer
from apps.reviews.choices import VerificationState
from apps.reviews.models import Verification
from apps.reviews.rechecks import outdated
from apps.reviews.services.quarantine import quarantine
from apps.reviews.services.rollback import MADE_WAY, verification_close, verification_order
from apps.stream.services import Log

LOWEST = 1
"""Everything else goes first, until a recheck has waited for ``WAITED``."""
WAITED = timedelta(minutes=30)
AGAIN_AFTER = timedelta(minutes=10)
ONCE_MORE = ("timeout", "over_limit")
"""Outcomes that a busy machine may cause: a champion is set aside only when a second run says so too."""


def champions_recheck() -> int:
    """Order a verification of every champion that none of now stands for; returns how many.

    Called again and again: what runs already, or failed for want of a working evaluator a moment ago, is left alone.
    """
    _hasten()
    ordered = 0
    rows = Champion.objects.filter(slot__state=SlotState.CHAMPION).select_related(
        "slot__team", "slot__operator", "slot__hardware", "kernel", "promotion__verdict"
    )
    for champion in rows:
        reason = outdated(champion)
        if reason is None or _lately(champion, reason):
            continue
        try:
            verification_order(champion.slot, champion.kernel, kind="recheck", person=None, restores=None,
                               reason=reason, priority=LOWEST)
        except (AppError, BytesDiffer):
            continue  # a verification began meanwhile, or the bytes are damaged, which the gate says already
        ordered += 1
    return ordered


def _hasten() -> None:
    """A recheck that waited for long takes its turn among rounds: a busy device must not put it off for ever."""
    Job.objects.filter(
        verification__kind="recheck", state=JobState.QUEUED, priority=LOWEST, created_at__lt=timezone.now() - WAITED,
    ).update(priority=PRIORITIES[JobPurpose.ROUND])


def _lately(champion: Champion, reason: str) -> bool:
    """Whether one runs, or one for the same reason ended without an answer a moment ago."""
    rows = Verification.objects.filter(slot=champion.slot)
    if rows.filter(state=VerificationState.RUNNING).exists():
        return True
    return rows.filter(
        kind="recheck", kernel=champion.kernel, reason=reason, state=VerificationState.REFUSED,
        ended_at__range=(timezone.now() - AGAIN_AFTER, timezone.now()),
    ).exclude(cause=MADE_WAY).exists()


def recheck_handle(row: Verification, verdict: Verdict | None, log: Log) -> None:
    """What an ended recheck means, inside the transaction that closes it. Only the champion's own device speaks about
    it: what an interpreter refuses is no answer."""
    champion = champion_of(row.slot)
    if champion is None or champion.kernel_id != row.kernel_id or row.slot.state != SlotState.CHAMPION:
        verification_close(row, VerificationState.REFUSED, "The champion changed meanwhile; the new one is checked.",
                           log)
        return
    blame = verdict.document.get("blame") if verdict is not None else "infrastructure"
    elsewhere = verdict is not None and verdict.hardware != row.slot.hardware.name
    if verdict is None or elsewhere or blame in ("infrastructure", "reference"):
        verification_close(row, VerificationState.REFUSED, _no_answer(row, verdict), log)
        return
    text = f"A later check says {verdict.outcome.replace('_', ' ')}: {gate.first_reason(verdict)}"
    if verdict.outcome in ONCE_MORE and not _failed_before(row):
        verification_close(row, VerificationState.DONE, f"{text} It is run once more to be sure.", log)
        return
    still = outdated(champion)
    if verdict.outcome == "passed" and still is not None:
        verification_close(row, VerificationState.REFUSED, f"It passed, but not where it counts. {still}", log)
        return
    verification_close(row, VerificationState.DONE, "" if verdict.outcome == "passed" else text, log)
    if verdict.outcome != "passed":
        quarantine(row.slot, text, log, verdict=verdict)


def _no_answer(row: Verification, verdict: Verdict | None) -> str:
    """The sentence for a check that says nothing about the champion."""
    said = gate.first_reason(verdict) if verdict is not None else (row.job.error if row.job is not None else "")
    return f"The evaluator gave no answer; the champion stays and is checked again in some minutes. {said}".strip()


def _failed_before(row: Verification) -> bool:
    """Whether the check just before this one, for the same reason, ended in such an outcome too."""
    before = Verification.objects.filter(
        slot=row.slot, kind="recheck", kernel=row.kernel, reason=row.reason, pk__lt=row.pk,
        state=VerificationState.DONE,
    ).select_related("job__verdict").order_by("-id").first()
    verdict = before.job.verdict if before is not None and before.job is not None else None
    return verdict is not None and verdict.outcome in ONCE_MORE
