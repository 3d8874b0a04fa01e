"""The closed lists of words of the documents, as string enumerations."""

from __future__ import annotations

from enum import StrEnum


class Backend(StrEnum):
    """How a kernel is written."""

    TRITON = "triton"
    NUMBA = "numba"


class Tier(StrEnum):
    """How far a change goes. ``NONE`` is a change of comments, blank lines or local names only."""

    NONE = "none"
    LIGHT = "light"
    MEDIUM = "medium"
    HEAVY = "heavy"

    @property
    def rank(self) -> int:
        """Position in the order none < light < medium < heavy."""
        return list(Tier).index(self)

    def __lt__(self, other: object) -> bool:
        return self.rank < Tier(other).rank  # type: ignore[arg-type]

    def __le__(self, other: object) -> bool:
        return self.rank <= Tier(other).rank  # type: ignore[arg-type]

    def __gt__(self, other: object) -> bool:
        return self.rank > Tier(other).rank  # type: ignore[arg-type]

    def __ge__(self, other: object) -> bool:
        return self.rank >= Tier(other).rank  # type: ignore[arg-type]


class Outcome(StrEnum):
    """Is the candidate right and within limits?"""

    PASSED = "passed"
    INCORRECT_SHAPE = "incorrect_shape"
    INCORRECT_DTYPE = "incorrect_dtype"
    INCORRECT_NUMERIC = "incorrect_numeric"
    INCORRECT_NAN = "incorrect_nan"
    INCORRECT_NONDETERMINISTIC = "incorrect_nondeterministic"
    OUT_OF_BOUNDS = "out_of_bounds"
    COMPILE_ERROR = "compile_error"
    RESOURCE_INFEASIBLE = "resource_infeasible"
    OVER_LIMIT = "over_limit"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    POLICY_VIOLATION = "policy_violation"
    REWARD_HACK = "reward_hack"
    NO_CHANGE = "no_change"
    DUPLICATE = "duplicate"
    GRANT_EXCEEDED = "grant_exceeded"
    UNSUPPORTED = "unsupported"
    UNSUPPORTED_HERE = "unsupported_here"
    INVALID_REFERENCE = "invalid_reference"
    INFRA_ERROR = "infra_error"


class Blame(StrEnum):
    """Whose fault an outcome is; only ``CANDIDATE`` and ``POLICY`` count against an agent."""

    CANDIDATE = "candidate"
    REFERENCE = "reference"
    INFRASTRUCTURE = "infrastructure"
    POLICY = "policy"


BLAME_OF_OUTCOME: dict[Outcome, Blame | None] = {
    Outcome.PASSED: None,
    Outcome.POLICY_VIOLATION: Blame.POLICY,
    Outcome.REWARD_HACK: Blame.POLICY,
    Outcome.NO_CHANGE: Blame.POLICY,
    Outcome.DUPLICATE: Blame.POLICY,
    Outcome.GRANT_EXCEEDED: Blame.POLICY,
    Outcome.UNSUPPORTED: Blame.POLICY,
    Outcome.UNSUPPORTED_HERE: Blame.INFRASTRUCTURE,
    Outcome.INVALID_REFERENCE: Blame.REFERENCE,
    Outcome.INFRA_ERROR: Blame.INFRASTRUCTURE,
}
"""Outcomes not listed are the candidate's fault."""


def blame_of(outcome: Outcome) -> Blame | None:
    """The party an outcome is charged to, ``None`` for ``passed``."""
    return BLAME_OF_OUTCOME.get(outcome, Blame.CANDIDATE)


class Comparison(StrEnum):
    """Is the candidate faster than what it is compared with? ``NONE``: nothing was timed."""

    FASTER = "faster"
    SLOWER = "slower"
    CANNOT_TELL = "cannot_tell"
    NONE = "none"


class Evidence(StrEnum):
    """How well a time is supported: claimed < bounded < profiled."""

    CLAIMED = "claimed"
    BOUNDED = "bounded"
    PROFILED = "profiled"


class Purpose(StrEnum):
    """Why a kernel is evaluated."""

    ROUND = "round"
    PROBE = "probe"
    PROMOTION = "promotion"
    SELFTEST = "selftest"
    CANARY = "canary"


class Role(StrEnum):
    """What an opposing kernel of an evaluation is to the candidate."""

    INCUMBENT = "incumbent"
    BASELINE = "baseline"
    CHAMPION = "champion"


class Stage(StrEnum):
    """The stages of an evaluation, in order."""

    ADMIT = "admit"
    STATIC = "static"
    ARITHMETIC = "arithmetic"
    PLAN = "plan"
    RESOURCES = "resources"
    SMOKE = "smoke"
    CORRECTNESS = "correctness"
    PROBES = "probes"
    BENCHMARK = "benchmark"
    RECHECK = "recheck"
    PROFILE = "profile"


class Direction(StrEnum):
    """What an idea is about."""

    TILING = "tiling"
    VECTORISATION = "vectorisation"
    OCCUPANCY = "occupancy"
    PIPELINING = "pipelining"
    SPLIT_REDUCTION = "split-reduction"
    FUSION = "fusion"
    LAYOUT = "layout"
    PRECISION = "precision"
    ALGORITHM = "algorithm"
    LAUNCH = "launch"


class Conclusion(StrEnum):
    """What a round showed about its hypothesis."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"
    FAILED = "failed"


class EventKind(StrEnum):
    """Kinds of durable events on a stream."""

    CAMPAIGN_STARTED = "campaign.started"
    CAMPAIGN_PAUSED = "campaign.paused"
    CAMPAIGN_RESUMED = "campaign.resumed"
    CAMPAIGN_PLATEAU = "campaign.plateau"
    CAMPAIGN_FINISHED = "campaign.finished"
    CAMPAIGN_STOPPED = "campaign.stopped"
    CAMPAIGN_FAILED = "campaign.failed"
    CAMPAIGN_STEERED = "campaign.steered"
    ROUND_STARTED = "round.started"
    ROUND_HYPOTHESES = "round.hypotheses"
    ROUND_PROPOSED = "round.proposed"
    ROUND_VERDICT = "round.verdict"
    ROUND_CONCLUDED = "round.concluded"
    ROUND_FAILED = "round.failed"
    ROUND_CANCELLED = "round.cancelled"
    AGENT_TURN = "agent.turn"
    SPOTCHECK_ASKED = "spotcheck.asked"
    SPOTCHECK_ANSWERED = "spotcheck.answered"
    REVIEW_OPENED = "review.opened"
    REVIEW_DECIDED = "review.decided"
    REVIEW_STALE = "review.stale"
    REVIEW_CLOSED = "review.closed"
    PROMOTION_STARTED = "promotion.started"
    PROMOTION_DONE = "promotion.done"
    PROMOTION_REFUSED = "promotion.refused"
    CHAMPION_CHANGED = "champion.changed"
    CHAMPION_QUARANTINED = "champion.quarantined"
    CHAMPION_EMPTIED = "champion.emptied"
    SELFTEST_PASSED = "selftest.passed"
    SELFTEST_FAILED = "selftest.failed"
    CANARY_DRIFTED = "canary.drifted"
    CANARY_STEADY = "canary.steady"
    WORKER_UP = "worker.up"
    WORKER_DOWN = "worker.down"


EPHEMERAL_KINDS = ("progress", "agent.delta", "beat")
"""Frames that are never stored: they may be lost without harm."""
