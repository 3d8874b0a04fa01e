"""The experiment log (R6): a view of the rounds, written from measurements alone."""

from __future__ import annotations

from harness.domain.log import LogEntry
from harness.domain.proposal import Claim
from harness.domain.summary import VerdictSummary
from harness.domain.verdict import Ratio
from harness.domain.vocabulary import Blame, Comparison, Role
from harness.engine.rules import closed_directions
from harness.engine.state import CampaignState, Round

NO_HYPOTHESIS = "none"


def log_entries(state: CampaignState) -> tuple[LogEntry, ...]:
    """One entry per concluded round, in order. Failed and cancelled rounds have no verdict and no entry."""
    closed = closed_directions(state)
    return tuple(_entry(record, record.direction in closed) for record in state.concluded if record.verdict is not None)


def performance_change(verdict: VerdictSummary) -> Ratio | None:
    """The ratio that ``comparison`` refers to: against the incumbent, else the baseline; ``None`` where not timed."""
    return verdict.ratio(Role.INCUMBENT) or verdict.ratio(Role.BASELINE)


def claim_contradicted(claim: Claim | None, verdict: VerdictSummary) -> bool:
    """Whether the data disagree with what the agent says it gained (R6, R23).

    A claimed gain is contradicted when the kernel was refused, when it was measured and is not ``faster``, or when
    the upper end of the measured interval is below half of the claim. Where nothing was timed nothing is contradicted.
    """
    if claim is None or claim.gain is None or claim.gain <= 0:
        return False
    if not verdict.passed:
        return verdict.blame in (Blame.CANDIDATE, Blame.POLICY)
    change = performance_change(verdict)
    if change is None:
        return False
    return verdict.comparison is not Comparison.FASTER or change.high - 1.0 < claim.gain / 2


def _entry(record: Round, closed: bool) -> LogEntry:
    verdict, candidate, hypothesis = record.verdict, record.candidate, record.hypothesis
    conclusion = record.conclusion
    assert verdict is not None and conclusion is not None
    bounced = record.bounces[-1].text if record.bounces else ""
    return LogEntry(
        round=record.number,
        direction=record.direction or NO_HYPOTHESIS,
        hypothesis=hypothesis.text if hypothesis else "No proposal was accepted in this round.",
        expected_gain=hypothesis.expected_gain if hypothesis else None,
        change_summary=candidate.change_summary if candidate else bounced,
        step_tier=verdict.step_tier,
        outcome=verdict.outcome,
        performance_change=performance_change(verdict),
        limits_passed=verdict.passed,
        conclusion=conclusion,
        agent_claim=candidate.claim if candidate else None,
        claim_contradicted=claim_contradicted(candidate.claim if candidate else None, verdict),
        do_not_repeat=closed,
    )
