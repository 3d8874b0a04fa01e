"""Writing down what an outside agent does in one asking. This record, not the agent's word, is the evidence of R7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.bridge.mcp.models import Asking
from apps.campaigns.models import Campaign

JOURNAL_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Noted:
    """One call in one asking. ``stated``: the hypotheses stated so far; ``read_log``: this call read the log."""

    tool: str
    token: int
    is_error: bool
    stated: Sequence[dict[str, Any]]
    read_log: bool


def asking_of(campaign: Campaign, round_number: int, attempt: int) -> Asking:
    """The record of this asking, an unsaved empty one where nothing was noted yet."""
    row = Asking.objects.filter(campaign=campaign, round=round_number, attempt=attempt).first()
    return row or Asking(campaign=campaign, round=round_number, attempt=attempt)


def asking_note(*, campaign: Campaign, round_number: int, attempt: int, noted: Noted) -> Asking:
    """Add one call to the record; on return it survives a kill."""
    now = timezone.now()
    with transaction.atomic():
        Asking.objects.get_or_create(campaign=campaign, round=round_number, attempt=attempt)
        row = Asking.objects.select_for_update().get(campaign=campaign, round=round_number, attempt=attempt)
        if noted.read_log:
            row.log_queries += 1
            row.log_queried_at = row.log_queried_at or now
        row.stated = list(noted.stated)
        if len(row.journal) < JOURNAL_LIMIT:
            row.journal = [*row.journal, {"tool": noted.tool, "token": noted.token, "error": noted.is_error,
                                          "at": now.isoformat(timespec="seconds")}]
        row.save()
    return row
