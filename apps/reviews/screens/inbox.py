"""Rows of the inbox: by tier and age, each with why it is my turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.campaigns.models import Round
from apps.core.untrusted import shown
from apps.kernels.screens.verdicts import over
from apps.reviews import gate, policies
from apps.reviews.models import Decision, ReviewRequest
from apps.reviews.selectors import approvals_of
from apps.teams.models import User


@dataclass(frozen=True, slots=True)
class InboxRow:
    """One request in a list."""

    request: ReviewRequest
    tier: str
    versus: Mapping[str, Any] | None
    role: str
    approvals: int
    needed: int
    why: str
    change: str

    @property
    def needed_text(self) -> str:
        """How many approvals are asked for, as text."""
        return str(self.needed)

    @property
    def title(self) -> str:
        """What the change is, from the round that made it."""
        return self.change or f"kernel {self.request.kernel.short}"


def row_of(request: ReviewRequest, user: User) -> InboxRow:
    """A request with the figures of lists."""
    tier = policies.effective_tier(request)
    counted = approvals_of(request)
    needed = policies.required_approvals(request.team, tier)
    role = "champion" if request.champion_id else "baseline"
    return InboxRow(
        request,
        tier,
        over(request.verdict.document, role) or over(request.verdict.document, "incumbent"),
        role,
        len(counted),
        needed,
        why_now(request, user, counted, needed),
        change_of(request),
    )


def change_of(request: ReviewRequest) -> str:
    """What the round that made the kernel says it changed; empty for a kernel from elsewhere."""
    made = Round.objects.filter(campaign=request.campaign_id, kernel=request.kernel_id).exclude(change_summary="")
    return shown(made.values_list("change_summary", flat=True).first() or "")


def why_now(request: ReviewRequest, user: User, counted: list[Decision], needed: int) -> str:
    """One sentence: why this person is asked, or why not."""
    blocked = gate.why_not(user, request, "approve")
    if blocked:
        return blocked
    if any(decision.user_id == user.pk for decision in counted):
        return "You approved it; it waits for others." if len(counted) < needed else "You approved it."
    if request.verdict.suspicious:
        return "A suspicious win always needs a person, whatever the tier."
    missing = needed - len(counted)
    if missing > 0:
        return f"{missing} approval{'s are' if missing > 1 else ' is'} missing; you may give one."
    return "Enough approvals; other requirements are open."
