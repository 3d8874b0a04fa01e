"""Rows that follow from the engine's fold: campaign state, rounds, hypotheses; and the events that tell of them."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from apps.bridge import api
from apps.campaigns.choices import (
    CAMPAIGN_ENDED,
    CAMPAIGN_MACHINE,
    ROUND_MACHINE,
    STARTING,
    HypothesisState,
    RoundState,
)
from apps.campaigns.models import Campaign, Hypothesis, Influence, Round
from apps.core.transitions import transition
from apps.kernels.choices import ContributionKind
from apps.kernels.models import Contribution, Kernel, Promotion, Verdict
from apps.kernels.services import contribution_add, kernel_store, origin_add
from apps.stream.services import Log

CAMPAIGN_EVENTS = {
    "paused": "campaign.paused", "plateau": "campaign.plateau", "finished": "campaign.finished",
    "stopped": "campaign.stopped", "failed": "campaign.failed",
}
ROUND_ENDS = {"concluded": "round.concluded", "failed": "round.failed", "cancelled": "round.cancelled"}


def project(
    campaign: Campaign, facts: api.EngineFacts, log: Log, *, kind: str, verdict: Verdict | None = None
) -> None:
    """Bring the rows of ``campaign`` in line with ``facts``. ``kind`` is the result just told, ``verdict`` its row."""
    if facts.baseline_measured:
        _baseline(campaign, log, verdict if kind == "BaselineMeasured" else None)
    for record in facts.rounds:
        _round(campaign, record, log, verdict if kind == "Evaluated" else None)
    _hypotheses(campaign, facts, log)
    _campaign(campaign, facts, log, verdict if kind in ("Evaluated", "BaselineMeasured") else None)


def report(campaign: Campaign, log: Log, kind: str, data: dict[str, Any]) -> None:
    """An event on the campaign's stream and, with the campaign's id, on its team's."""
    log.append(campaign.stream, kind, data)
    log.append(campaign.team.stream, kind, {"campaign": campaign.pk, **data})


def _baseline(campaign: Campaign, log: Log, verdict: Verdict | None) -> None:
    row = Round.objects.filter(campaign=campaign, number=0).first()
    if row is None:
        row = open_round(campaign, 0, log)
    if row.state in (RoundState.CONCLUDED, RoundState.FAILED, RoundState.CANCELLED):
        return
    if verdict is not None:
        log.append(campaign.stream, "round.verdict", verdict_data(row, verdict))
    transition(
        row, ROUND_MACHINE, RoundState.CONCLUDED, kernel=campaign.start_kernel, verdict=verdict,
        outcome=verdict.outcome if verdict else "", comparison=verdict.comparison if verdict else "",
        state_since=timezone.now(), ended_at=timezone.now(),
    )
    log.append(campaign.stream, "round.concluded", {"round": 0, "outcome": row.outcome, "conclusion": ""})


def open_round(campaign: Campaign, number: int, log: Log) -> Round:
    """The row of round ``number``, made with its event when it is new."""
    now = timezone.now()
    row, created = Round.objects.get_or_create(
        campaign=campaign, number=number,
        defaults={"started_at": now, "state_since": now, "base": campaign.incumbent or campaign.start_kernel},
    )
    if created:
        log.append(campaign.stream, "round.started", {"round": number})
    return row


def _round(campaign: Campaign, record: api.RoundFacts, log: Log, verdict: Verdict | None) -> None:
    row = open_round(campaign, record.number, log)
    changes = _changes(campaign, row, record)
    mine = verdict if verdict is not None and record.kernel == verdict.kernel_id and row.verdict_id is None else None
    if mine is not None and record.state in ("concluded", "failed"):
        changes["verdict"] = mine
        log.append(campaign.stream, "round.verdict", verdict_data(row, mine))
    if "kernel" in changes:
        log.append(campaign.stream, "round.proposed", {
            "round": row.number, "direction": record.direction, "change_summary": record.change_summary,
            "kernel": record.kernel,
        })
    moved = record.state != row.state
    if not moved and not changes:
        return
    now = timezone.now()
    if not moved:
        Round.objects.filter(pk=row.pk).update(**changes)
        return
    if record.state in ROUND_ENDS:
        changes["ended_at"] = now
    transition(row, ROUND_MACHINE, record.state, state_since=now, **changes)
    if record.state in ROUND_ENDS:
        data = {"round": row.number, "outcome": record.outcome, "conclusion": record.conclusion, "cause": record.cause}
        log.append(campaign.stream, ROUND_ENDS[record.state], data)


def _changes(campaign: Campaign, row: Round, record: api.RoundFacts) -> dict[str, Any]:
    """Fields of the row that differ from the fold."""
    wanted: dict[str, Any] = {
        "bounces": list(record.bounces), "direction": record.direction, "change_summary": record.change_summary,
        "step_tier": record.step_tier, "outcome": record.outcome, "comparison": record.comparison,
        "conclusion": record.conclusion, "cause": record.cause, "entry": record.entry,
    }
    if record.hypothesis is not None:
        wanted |= {
            "hypothesis_key": record.hypothesis["id"], "hypothesis": record.hypothesis["text"],
            "expected_gain": record.hypothesis["expected_gain"],
        }
    changes = {name: value for name, value in wanted.items() if getattr(row, name) != value}
    if record.kernel is not None and row.kernel_id != record.kernel and record.source is not None:
        changes["kernel"] = _kernel(campaign, row, record.source)
    if record.base is not None and row.base_id != record.base and Kernel.objects.filter(pk=record.base).exists():
        changes["base_id"] = record.base
    return changes


def _kernel(campaign: Campaign, row: Round, source: str) -> Kernel:
    """Store the candidate. Whoever started the campaign, and whoever had a hand in its parent, contributed."""
    parent = campaign.incumbent or campaign.start_kernel
    kernel = kernel_store(
        source=source.encode("utf-8"), operator=campaign.slot.operator, backend=campaign.slot.backend
    )
    origin_add(team=campaign.team, kernel=kernel, source=f"campaign:{campaign.pk}", parent=parent)
    contribution_add(team=campaign.team, kernel=kernel, user=campaign.started_by, kind=ContributionKind.STARTED)
    for influence in Influence.objects.filter(campaign=campaign).select_related("user"):
        kind = ContributionKind.STARTED if influence.source in STARTING else ContributionKind.COMMENTED
        contribution_add(team=campaign.team, kernel=kernel, user=influence.user, kind=kind)
    inherit(campaign, kernel, parent)
    return kernel


def inherit(campaign: Campaign, kernel: Kernel, parent: Kernel | None) -> None:
    """Edits and comments that a parent was built from are in the child too; who started the parent's campaign as well,
    unless the parent was promoted: then others have looked at it, and what is built on it is a step of its own."""
    if parent is None or parent.pk == kernel.pk:
        return
    rows = Contribution.objects.filter(kernel__normal_digest=parent.normal_digest)
    if Promotion.objects.filter(kernel=parent, slot__team=campaign.team).exists():
        rows = rows.exclude(kind=ContributionKind.STARTED)
    for row in rows.select_related("user"):
        contribution_add(team=campaign.team, kernel=kernel, user=row.user, kind=row.kind)


def verdict_data(row: Round, verdict: Verdict) -> dict[str, Any]:
    """The data of a ``round.verdict`` event: what the feed and the plot need, not the whole document."""
    timing = verdict.document.get("timing") or {}
    return {
        "round": row.number, "verdict": verdict.pk, "kernel": verdict.kernel_id, "outcome": verdict.outcome,
        "comparison": verdict.comparison, "compared_with": verdict.compared_with, "score": verdict.score,
        "overall": timing.get("overall", {}), "noise": timing.get("noise"),
        "reason": (verdict.document.get("reasons") or [{}])[0].get("text", ""),
    }


def _hypotheses(campaign: Campaign, facts: api.EngineFacts, log: Log) -> None:
    known = {row.key: row for row in Hypothesis.objects.filter(campaign=campaign)}
    stated_in = facts.rounds[-1].number if facts.rounds else 0
    fresh = []
    for document in facts.hypotheses:
        fields = {name: document[name] for name in ("direction", "function", "text", "evidence", "expected_gain")}
        state = HypothesisState.TRIED if document["id"] in facts.tried_hypotheses else HypothesisState.OPEN
        row = known.pop(document["id"], None)
        if row is None:
            round_row = Round.objects.get(campaign=campaign, number=stated_in)
            Hypothesis.objects.create(campaign=campaign, key=document["id"], round=round_row, state=state, **fields)
            fresh.append({"id": document["id"], **fields})
        elif row.state != state or any(getattr(row, name) != value for name, value in fields.items()):
            Hypothesis.objects.filter(pk=row.pk).update(state=state, **fields)
    struck = [row.pk for row in known.values() if row.state != HypothesisState.STRUCK]
    Hypothesis.objects.filter(pk__in=struck).update(state=HypothesisState.STRUCK)
    if fresh:
        log.append(campaign.stream, "round.hypotheses", {"round": stated_in, "hypotheses": fresh})


def _campaign(campaign: Campaign, facts: api.EngineFacts, log: Log, verdict: Verdict | None) -> None:
    changes: dict[str, Any] = {
        "cause_code": facts.code, "cause": facts.cause, "options": list(facts.options), "grant": facts.grant,
        "tokens_used": facts.tokens, "active_seconds": facts.seconds, "money_used": facts.money,
        "turns_used": facts.turns, "agent": facts.agent, "budget": facts.budget, "forbidden": list(facts.forbidden),
        "steering": list(facts.steering), "queued": facts.queued,
    }
    if campaign.incumbent_id != facts.incumbent and Kernel.objects.filter(pk=facts.incumbent).exists():
        changes["incumbent_id"] = facts.incumbent
    if verdict is not None and verdict.kernel_id == facts.incumbent:
        changes["incumbent_verdict"] = verdict
    before = campaign.state
    if before == facts.state:
        Campaign.objects.filter(pk=campaign.pk).update(**changes)
        campaign.refresh_from_db()
        return
    now = timezone.now()
    if facts.state in CAMPAIGN_ENDED:
        changes["ended_at"] = now
    transition(campaign, CAMPAIGN_MACHINE, facts.state, state_since=now, **changes)
    kind = CAMPAIGN_EVENTS.get(facts.state, "campaign.resumed")
    report(campaign, log, kind, {"code": facts.code, "cause": facts.cause, "options": list(facts.options),
                                 "from": before, "grant": facts.grant})
