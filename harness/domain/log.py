"""The experiment log: a view of rounds and verdicts with a fixed schema (R6)."""

from __future__ import annotations

from dataclasses import dataclass

from harness.domain.proposal import Claim
from harness.domain.verdict import Ratio
from harness.domain.vocabulary import Conclusion, Outcome, Tier

LOG_COLUMNS = (
    "round", "direction", "hypothesis", "expected_gain", "change_summary", "step_tier", "outcome",
    "performance_change", "limits_passed", "conclusion", "agent_claim", "claim_contradicted", "do_not_repeat",
)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One row of the log; ``direction`` is ``<direction>:<kernel function>``, gains are fractions."""

    round: int
    direction: str
    hypothesis: str
    expected_gain: float | None
    change_summary: str
    step_tier: Tier | None
    outcome: Outcome
    performance_change: Ratio | None
    limits_passed: bool
    conclusion: Conclusion
    agent_claim: Claim | None = None
    claim_contradicted: bool = False
    do_not_repeat: bool = False
