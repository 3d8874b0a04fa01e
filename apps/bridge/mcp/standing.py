"""Where a campaign stands, for an agent that asks from outside: whose turn it is, and what came of the last answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.bridge.mcp.reply import Mark
from apps.campaigns import services
from apps.campaigns.choices import CAMPAIGN_ENDED
from apps.campaigns.models import Campaign, EngineResult
from apps.reviews.models import ReviewRequest
from harness.engine import actions
from harness.engine.state import CampaignState, Round
from harness.engine.step import next_action

REASONS_SHOWN = 8
REASON_CHARS = 600


@dataclass(frozen=True, slots=True)
class Standing:
    """``asked`` is what the agent is asked for now, ``None`` while somebody or something else is awaited."""

    campaign: Campaign
    state: CampaignState | None
    asked: actions.AskAgent | None
    waits_for: str
    """``agent``, ``evaluator`` (the site works), ``person`` or ``nobody`` (it is over, or not begun)."""

    @property
    def settled(self) -> bool:
        """Whether waiting brings nothing without the agent or a person."""
        return self.waits_for != "evaluator"


def mark_of(campaign: Campaign) -> Mark:
    """Changes whenever anything is told about ``campaign``."""
    return Mark(campaign.pk, campaign.version, EngineResult.objects.filter(campaign=campaign).count())


def standing_of(campaign: Campaign) -> Standing:
    """From the rows, as they are now."""
    if campaign.start_kernel is None or campaign.started_at is None or campaign.imported_from:
        return Standing(campaign, None, None, "nobody")
    state = services.engine_state(campaign)
    action = next_action(state)
    if isinstance(action, actions.AskAgent):
        return Standing(campaign, state, action, "agent")
    if isinstance(action, actions.WaitForPerson):
        # Where finishing is the only choice the engine takes it by itself.
        alone = campaign.options == [str(actions.PlateauChoice.FINISH)]
        return Standing(campaign, state, None, "evaluator" if alone else "person")
    if isinstance(action, actions.Finish | actions.Fail):
        return Standing(campaign, state, None, "nobody")
    return Standing(campaign, state, None, "evaluator")


def listed(campaign: Campaign) -> dict[str, Any]:
    """A campaign in the list: what it is about and its state, without folding its results."""
    return {
        "campaign": campaign.pk, "name": campaign.name, "state": campaign.state, "cause": campaign.cause,
        "operator": campaign.slot.operator.name, "backend": campaign.slot.backend,
        "hardware": campaign.slot.hardware.name, "workload": campaign.slot.workload, "grant": campaign.grant,
        "over": campaign.state in CAMPAIGN_ENDED,
    }


def document(standing: Standing) -> dict[str, Any]:
    """What ``wait_for_verdict`` answers."""
    campaign, state = standing.campaign, standing.state
    found = {**listed(campaign), "waits_for": standing.waits_for, "your_turn": standing.asked is not None}
    if standing.asked is not None:
        asked = standing.asked
        found |= {"round": asked.round, "asked_for": asked.purpose, "sent_back": list(asked.bounced)}
    if state is None:
        return found
    last = next((record for record in reversed(state.rounds) if not record.active), None)
    return found | {
        "last_round": _round(last) if last is not None else None,
        "incumbent": {"round": state.incumbent.round, "kernel": state.incumbent.kernel.digest},
        "rounds_concluded": len(state.concluded), "budget": _budget(state), "options": list(campaign.options),
        "review_requests": _requests(campaign),
    }


def _round(record: Round) -> dict[str, Any]:
    """A round that is over. Figures exist only where something was timed."""
    verdict = record.verdict
    found: dict[str, Any] = {"round": record.number, "state": str(record.status), "cause": record.fault,
                             "conclusion": str(record.conclusion) if record.conclusion else None}
    if verdict is None:
        return found
    overall = {role: {"ratio": ratio.ratio, "low": ratio.low, "high": ratio.high}
               for role, ratio in verdict.overall.items()}
    reasons = [{"code": reason.code, "text": reason.text[:REASON_CHARS]} for reason in verdict.reasons[:REASONS_SHOWN]]
    return found | {"outcome": str(verdict.outcome), "comparison": str(verdict.comparison) if verdict.timed else None,
                    "timing": overall if verdict.timed else "not timed", "reasons": reasons}


def _budget(state: CampaignState) -> dict[str, Any]:
    budget = state.allowance
    return {
        "rounds": [len(state.concluded), budget.rounds],
        "evaluations": [sum(record.evaluated for record in state.rounds), budget.evaluations],
        "seconds": [round(state.seconds, 1), budget.seconds],
    }


def _requests(campaign: Campaign) -> list[dict[str, Any]]:
    """Review requests with their state: nothing about who may decide, and no way to."""
    rows = ReviewRequest.objects.filter(campaign=campaign).order_by("pk")
    return [{"request": str(row), "state": row.state, "kernel": row.kernel_id} for row in rows]
