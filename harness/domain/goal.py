"""The goal of a campaign: a structured, unambiguous document, frozen at start (R13)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.domain.codec import ADDED, check_schema, from_document, to_document
from harness.domain.digest import digest_document
from harness.domain.errors import DocumentError, GoalError
from harness.domain.vocabulary import Backend, Tier

ALWAYS_PROHIBITED = ("interface change", "external dependency")
OPTIONAL_PROHIBITIONS = ("atomics", "inline assembly", "numeric modes", "split kernels")
WEIGHTS = ("latency", "throughput", "stability", "cold_start")
LIMITS = ("rounds", "evaluations", "seconds", "tokens", "money", "turns")
"""What a budget can limit."""
LEAST = {"money": 0.01}
MOST_SAMPLES = 8
"""Candidates of one asking at most (``agent.best_of``)."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Shares of the score; they sum to 1."""

    latency: float = 0.7
    throughput: float = 0.2
    stability: float = 0.1
    cold_start: float = 0.0


@dataclass(frozen=True, slots=True)
class Objective:
    """What is improved."""

    weights: Weights = Weights()


@dataclass(frozen=True, slots=True)
class ToleranceOverride:
    """A looser or tighter numeric bound with the reason a reviewer will read. Relative, a fraction."""

    relative: float
    reason: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Hard limits, never traded. ``scratch_ratio`` is scratch over input+output bytes, ``shared_bytes`` per block,
    ``cv`` the robust coefficient of variation, ``throughput_floor`` in GB/s; ``None`` means the device's own limit."""

    scratch_ratio: float | None = 2.0
    registers: int | None = 255
    spill_bytes: int | None = 0
    shared_bytes: int | None = None
    cv: float | None = 0.10
    throughput_floor: float | None = None
    tolerance: ToleranceOverride | None = None


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """Which agent runs the campaign; ``endpoint`` and ``model`` name server settings, never a key.

    ``mcp`` is an agent outside of this server, which hands its proposals in. ``best_of`` is how many candidates a
    language model is asked for at a time, 1 to 8; each distinct one becomes a round of its own.
    """

    kind: Literal["playbook", "autotune", "openai", "mcp"] = "playbook"
    endpoint: str | None = None
    model: str | None = None
    effort: str | None = None
    strategy: str | None = None
    best_of: int = field(default=1, metadata=ADDED)


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent; ``None`` is no limit of that kind, at least one of rounds, evaluations, seconds is set.

    ``tokens``, ``turns`` and ``money`` (in the currency of the endpoint's prices) are those of a language model.
    ``at_limit`` says what a spent budget leads to: the campaign's end, or the question whether to raise it.
    """

    rounds: int | None = 20
    evaluations: int | None = 60
    seconds: float | None = 3600.0
    tokens: int | None = None
    money: float | None = field(default=None, metadata=ADDED)
    turns: int | None = field(default=None, metadata=ADDED)
    at_limit: Literal["stop", "ask"] = field(default="stop", metadata=ADDED)


@dataclass(frozen=True, slots=True)
class Stop:
    """When a campaign is done: R15 to R17. ``plateau_gain`` is the smallest gain that resets the plateau count."""

    plateau_rounds: int = 3
    plateau_gain: float = 0.02
    direction_failures: int = 3
    roof_share: float = 0.95
    spot_check_every: int = 5
    pause_after_diagnosis: bool = False


@dataclass(frozen=True, slots=True)
class Goal:
    """See CONTRACTS section 1. ``adjustable`` narrows the operator's declared ranges; absent keys keep theirs."""

    operator: str
    backend: Backend
    hardware: str
    workload: str
    objective: Objective = Objective()
    limits: Limits = Limits()
    grant: Tier = Tier.MEDIUM
    adjustable: dict[str, tuple[int, int]] = field(default_factory=dict)
    prohibited: tuple[str, ...] = ALWAYS_PROHIBITED
    agent: AgentChoice = AgentChoice()
    budget: Budget = Budget()
    stop: Stop = Stop()
    version: int = 1

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON."""
        return digest_document(to_document(self))


def goal_from_document(document: Any) -> Goal:
    """Read a goal document and refuse contradictions that need no operator to see.

    Raises:
        GoalError: with the dotted ``key`` of the value to change.
    """
    try:
        check_schema(document, "goal")
        goal = from_document(document, Goal)
    except DocumentError as error:
        raise GoalError(error.text, key=error.key) from error
    check_goal(goal)
    return goal


def goal_from_toml(text: str) -> Goal:
    """Read a goal from TOML text (``--goal goal.toml``)."""
    try:
        return goal_from_document(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise GoalError(f"The goal is not valid TOML: {error}. Mend that line and run again.") from error


def check_goal(goal: Goal) -> None:
    """Refuse weights that do not sum to 1, an empty budget, a grant of nothing and the like.

    Raises:
        GoalError: the first contradiction found.
    """
    weights = goal.objective.weights
    total = weights.latency + weights.throughput + weights.stability + weights.cold_start
    if min(weights.latency, weights.throughput, weights.stability, weights.cold_start) < 0:
        raise GoalError("A weight is below 0. Weights are shares between 0 and 1.", key="objective.weights")
    if abs(total - 1.0) > 1e-6:
        raise GoalError(f"The weights sum to {total:.3f}, not 1. Change one of them.", key="objective.weights")
    if goal.grant is Tier.NONE:
        raise GoalError("The grant is 'none': no change would be allowed. Choose light, medium or heavy.", key="grant")
    check_budget(goal.budget)
    if not 1 <= goal.agent.best_of <= MOST_SAMPLES:
        raise GoalError(f"agent.best_of is {goal.agent.best_of}. Ask for 1 to {MOST_SAMPLES} candidates at a time.",
                        key="agent.best_of")
    if goal.stop.plateau_gain < 0.02:
        raise GoalError("stop.plateau_gain is below 0.02, the smallest gain that can be told from noise.",
                        key="stop.plateau_gain")
    for rule in ALWAYS_PROHIBITED:
        if rule not in goal.prohibited:
            raise GoalError(f"'{rule}' is always prohibited; leave it in the list.", key="prohibited")
    for rule in goal.prohibited:
        if rule not in ALWAYS_PROHIBITED + OPTIONAL_PROHIBITIONS:
            known = ", ".join(ALWAYS_PROHIBITED + OPTIONAL_PROHIBITIONS)
            raise GoalError(f"'{rule}' is not a prohibition the static stage knows. Known: {known}.", key="prohibited")
    for key, (low, high) in goal.adjustable.items():
        if low > high:
            raise GoalError(f"adjustable.{key}: the range {low} to {high} is empty.", key=f"adjustable.{key}")
    tolerance = goal.limits.tolerance
    if tolerance is not None and not tolerance.reason.strip():
        raise GoalError("A tolerance override needs a reason that the reviewer can read.",
                        key="limits.tolerance.reason")


def check_budget(budget: Budget) -> None:
    """Refuse a budget without an end and limits that let nothing run.

    Raises:
        GoalError: ``key`` names the value to change.
    """
    if budget.rounds is None and budget.evaluations is None and budget.seconds is None:
        raise GoalError("The budget has no limit. Set rounds, evaluations or seconds.", key="budget")
    for name in LIMITS:
        value = getattr(budget, name)
        if value is not None and not 0 < value < float("inf"):
            raise GoalError(f"budget.{name} is {value}: nothing could run. Use at least {LEAST.get(name, 1)}.",
                            key=f"budget.{name}")
