"""Writing down what an outside agent does in one asking. This record, not the agent's word, is the evidence of R7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.bridge.mcp.models import Asking
from apps.campaigns.models import Campaign, EngineResult

JOURNAL_LIMIT = 200
ANSWERED = ("Proposed", "AgentFailed")
"""Results that end an asking."""


@dataclass(frozen=True, slots=True)
class Noted:
    """One call in one asking. ``stated``: the hypotheses that this call stated, ``None``: it stated none, and what
    another client of the campaign stated meanwhile stays; ``read_log``: this call read the log."""

    tool: str
    token: int
    is_error: bool
    stated: Sequence[dict[str, Any]] | None
    read_log: bool


def asking_of(campaign: Campaign, round_number: int, attempt: int) -> Asking:
    """The record of the present asking, an unsaved empty one where nothing was noted yet."""
    before = EngineResult.objects.filter(campaign=campaign, kind__in=ANSWERED).count()
    row = Asking.objects.filter(campaign=campaign, answers_before=before).first()
    return row or Asking(campaign=campaign, answers_before=before, round=round_number, attempt=attempt)


def asking_note(*, asking: Asking, noted: Noted) -> Asking:
    """Add one call to the record; on return it survives a kill."""
    now = timezone.now()
    with transaction.atomic():
        Asking.objects.get_or_create(campaign=asking.campaign, answers_before=asking.answers_before,
                                     defaults={"round": asking.round, "attempt": asking.attempt})
        row = Asking.objects.select_for_update().get(campaign=asking.campaign, answers_before=asking.answers_before)
        if noted.read_log:
            row.log_queries += 1
            row.log_queried_at = row.log_queried_at or now
        if noted.stated is not None:
            row.stated = list(noted.stated)
        if len(row.journal) < JOURNAL_LIMIT:
            row.journal = [*row.journal, {"tool": noted.tool, "token": noted.token, "error": noted.is_error,
                                          "at": now.isoformat(timespec="seconds")}]
        row.save()
    return row
