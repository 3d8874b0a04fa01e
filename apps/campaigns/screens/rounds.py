"""Rounds as rows of the experiment log and as points of the speed-up plot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.campaigns.choices import RoundState
from apps.campaigns.models import Campaign, Hypothesis, Round
from apps.campaigns.plots import Reference, RoundPoint
from apps.campaigns.screens.stepper import shown_state
from apps.core import figures, words
from apps.kernels.screens.verdicts import over, over_start, overall_of

BASELINE = {"ratio": 1.0, "low": 1.0, "high": 1.0}
OPEN = (RoundState.THINKING, RoundState.EVALUATING)


@dataclass(frozen=True, slots=True)
class LogRow:
    """One line of the experiment log: the round, its entry, and what the page adds."""

    round: Round
    entry: dict[str, Any]
    change: dict[str, Any] | None
    claim: dict[str, Any] | None
    contradicted: bool
    now: bool

    @property
    def state(self) -> str:
        """The round's state as the page says it."""
        return shown_state(self.round)

    @property
    def nothing(self) -> str:
        """What stands where a round has neither change nor hypothesis."""
        return "thinking" if self.now else "no candidate came of it"

    @property
    def contradiction(self) -> str:
        """What was claimed and what was measured, where the data disagree."""
        return contradiction_of(self.entry)

    @property
    def timed(self) -> bool:
        """Whether its verdict carries times."""
        return bool(self.round.verdict and self.round.verdict.document.get("timing"))

    @property
    def suspicious(self) -> bool:
        """Whether the verdict flags a suspicious win."""
        return bool(self.round.verdict and self.round.verdict.suspicious)


def rounds_with_verdicts(campaign: Campaign) -> list[Round]:
    """All rounds with kernel and verdict, newest first."""
    return list(Round.objects.filter(campaign=campaign).select_related("verdict", "kernel", "base").order_by("-number"))


def log_rows(rounds: Iterable[Round]) -> list[LogRow]:
    """Rows in the given order. The entry is the engine's; a round still open shows what is known so far."""
    rows = []
    for one in rounds:
        entry = one.entry or {}
        rows.append(
            LogRow(
                one,
                entry,
                entry.get("performance_change"),
                entry.get("agent_claim") or claim_of(one),
                bool(entry.get("claim_contradicted")),
                one.state in OPEN,
            )
        )
    return rows


def claim_of(one: Round) -> dict[str, Any] | None:
    """What the agent claimed in its proposal."""
    candidate = (one.proposal or {}).get("candidate") or one.proposal or {}
    return candidate.get("claim") if isinstance(candidate, dict) else None


def contradiction_of(entry: Mapping[str, Any]) -> str:
    """``Claimed 3.000×, measured 0.900× [0.880, 0.920]``; empty where the data do not disagree."""
    gain = (entry.get("agent_claim") or {}).get("gain")
    if not entry.get("claim_contradicted") or gain is None:
        return ""
    change = entry.get("performance_change")
    if change:
        interval = figures.interval(change.get("low"), change.get("high"))
        measured = f"measured {figures.ratio(change['ratio'])} {interval} over the incumbent"
    else:
        measured = f"measured nothing, it was refused: {str(entry.get('outcome', '')).replace('_', ' ')}"
    return f"Claimed {figures.ratio(1 + gain)}, {measured}."


def kind_of(one: Round) -> str:
    """How the plot marks a round."""
    if one.state in OPEN:
        return "open"
    if one.number == 0 and one.outcome == "passed":
        return "accepted"
    return {"faster": "accepted", "cannot_tell": "cannot_tell", "slower": "slower"}.get(one.comparison, "refused")


def points(rounds: Iterable[Round], start: str | None) -> list[RoundPoint]:
    """Points by round number; a round that passed and was not timed has none.

    Round 0 is 1 by definition; every other ratio was measured against it in one session.
    """
    found = []
    for one in sorted(rounds, key=lambda row: row.number):
        kind = kind_of(one)
        if kind == "open":
            continue
        timed = bool(one.verdict and one.verdict.document.get("timing"))
        if one.outcome == "passed" and not timed:
            continue  # right and within limits, but nothing was timed: there is nothing to draw
        ratio = (
            BASELINE
            if one.number == 0 and kind == "accepted"
            else over_start(overall_of(one.verdict), one.verdict.against if one.verdict else {}, start)
        )
        word = (
            words.mark("comparison", one.comparison).word
            if one.comparison not in ("", "none")
            else (words.mark("outcome", one.outcome or one.state).word)
        )
        if ratio is None:
            found.append(RoundPoint(one.number, "refused", None, None, None, word))
        else:
            found.append(RoundPoint(one.number, kind, ratio["ratio"], ratio["low"], ratio["high"], word))
    return found


def references(campaign: Campaign) -> list[Reference]:
    """Lines of the plot that the incumbent's own session measured: champion and best library over round 0."""
    verdict = campaign.incumbent_verdict
    if verdict is None:
        return []
    base = over_start(overall_of(verdict), verdict.against, campaign.start_kernel_id)
    found = []
    for role, label in (("champion", "champion"), ("library", "best library")):
        other = over(verdict.document, role)
        if base and other:
            found.append(Reference(role, label, base["ratio"] / other["ratio"]))
    sheet_roof = roof_ratio(verdict.document, base)
    if sheet_roof:
        found.append(Reference("roof", "measured roof", sheet_roof))
    return found


def roof_ratio(document: Mapping[str, Any], base: Mapping[str, Any] | None) -> float | None:
    """Where the measured roof lies over round 0: the incumbent's ratio over its weighted share of the roof."""
    shapes = (document.get("timing") or {}).get("shapes") or ()
    known = [(shape["weight"], shape["roof_share"]) for shape in shapes if shape.get("roof_share")]
    total = sum(weight for weight, _ in known)
    if not base or not known or total < 0.999 * sum(shape["weight"] for shape in shapes):
        return None
    return base["ratio"] / (sum(weight * share for weight, share in known) / total)


@dataclass(frozen=True, slots=True)
class HypothesisRow:
    """One idea with what came of it."""

    hypothesis: Hypothesis
    rounds: list[Round]
    best: dict[str, Any] | None
    state: str

    @property
    def now(self) -> bool:
        """Whether a round works on it."""
        return self.state == "now"


def hypothesis_rows(hypotheses: Iterable[Hypothesis], rounds: Iterable[Round]) -> list[HypothesisRow]:
    """Ideas by expected gain beside the best gain that was measured for them."""
    by_key: dict[str, list[Round]] = {}
    for one in sorted(rounds, key=lambda row: row.number):
        if one.hypothesis_key:
            by_key.setdefault(one.hypothesis_key, []).append(one)
    rows = []
    for hypothesis in hypotheses:
        tried = by_key.get(hypothesis.key, [])
        measured = [entry for one in tried if (entry := (one.entry or {}).get("performance_change"))]
        best = max(measured, key=lambda change: change["ratio"], default=None)
        rows.append(HypothesisRow(hypothesis, tried, best, state_of(hypothesis, tried)))
    return rows


def state_of(hypothesis: Hypothesis, tried: list[Round]) -> str:
    """``struck``, ``now``, a conclusion's word, ``closed`` or ``untried``."""
    if hypothesis.state == "struck":
        return "struck"
    if any(one.state in OPEN for one in tried):
        return "now"
    conclusions = [one.conclusion for one in tried if one.conclusion]
    if "confirmed" in conclusions:
        return "confirmed"
    if any((one.entry or {}).get("do_not_repeat") for one in tried):
        return "closed"
    return conclusions[-1] if conclusions else "untried"
