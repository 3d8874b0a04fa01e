"""The state of a campaign: frozen, rebuilt by folding results, never stored as such."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.domain.digest import digest_source
from harness.domain.goal import AgentChoice, Budget, Goal
from harness.domain.proposal import Candidate, Hypothesis
from harness.domain.request import SourceRef
from harness.domain.steering import Spent, Steer
from harness.domain.summary import VerdictSummary
from harness.domain.vocabulary import Blame, Comparison, Conclusion, Outcome, Tier
from harness.engine.actions import AskPurpose, PlateauCause


class Status(StrEnum):
    """The running part of CONTRACTS section 4's campaign states (``draft`` is before the engine)."""

    RUNNING = "running"
    PAUSED = "paused"
    PLATEAU = "plateau"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def over(self) -> bool:
        """Whether nothing can happen any more but reviews."""
        return self in (Status.FINISHED, Status.STOPPED, Status.FAILED)


class RoundStatus(StrEnum):
    """States of a round (CONTRACTS section 4)."""

    THINKING = "thinking"
    EVALUATING = "evaluating"
    CONCLUDED = "concluded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Bounce:
    """Why a proposal was sent back: machine-readable code and a sentence for the agent."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Round:
    """One iteration. ``verdict`` may be the engine's own (duplicate, no change, third bounce): then ``evaluated`` is
    false. ``attempts`` counts infrastructure faults, ``opponent`` is the incumbent's digest it was measured against."""

    number: int
    purpose: AskPurpose = "candidate"
    status: RoundStatus = RoundStatus.THINKING
    bounces: tuple[Bounce, ...] = ()
    hypothesis: Hypothesis | None = None
    candidate: Candidate | None = None
    kernel: SourceRef | None = None
    normal_digest: str | None = None
    opponent: str | None = None
    verdict: VerdictSummary | None = None
    evaluated: bool = False
    attempts: int = 0
    fault: str = ""

    @property
    def active(self) -> bool:
        """Whether the round still runs."""
        return self.status in (RoundStatus.THINKING, RoundStatus.EVALUATING)

    @property
    def concluded(self) -> bool:
        """Whether the round counts against the budget: it has an answer that is not an infrastructure fault."""
        return self.status is RoundStatus.CONCLUDED

    @property
    def conclusive(self) -> bool:
        """R15."""
        return self.concluded and self.verdict is not None and self.verdict.conclusive

    @property
    def direction(self) -> str | None:
        """``<direction>:<kernel function>``, or ``None`` where no valid hypothesis was named."""
        return None if self.hypothesis is None else direction_key(self.hypothesis)

    @property
    def counts_against_direction(self) -> bool:
        """R16: conclusive without ``faster``, or refused, broken or incorrect; infrastructure never counts."""
        if not self.concluded or self.verdict is None or self.hypothesis is None or self.verdict.faster:
            return False
        if self.verdict.passed:
            return self.verdict.conclusive
        return self.verdict.blame in (Blame.CANDIDATE, Blame.POLICY)

    @property
    def conclusion(self) -> Conclusion | None:
        """CONTRACTS section 1; ``None`` while the round runs or when it has no verdict."""
        if self.verdict is None or not self.concluded:
            return None
        if self.verdict.outcome is not Outcome.PASSED:
            return Conclusion.FAILED
        return {
            Comparison.FASTER: Conclusion.CONFIRMED, Comparison.SLOWER: Conclusion.REFUTED,
        }.get(self.verdict.comparison, Conclusion.INCONCLUSIVE)


def direction_key(hypothesis: Hypothesis) -> str:
    """The direction of an idea: what it is about, and the kernel function it touches."""
    return f"{hypothesis.direction}:{hypothesis.function}"


@dataclass(frozen=True, slots=True)
class Incumbent:
    """The best verified kernel so far; round 0 is the baseline. ``verdict`` is ``None`` before it was measured."""

    round: int
    kernel: SourceRef
    normal_digest: str
    verdict: VerdictSummary | None = None


@dataclass(frozen=True, slots=True)
class SpotCheck:
    """R17: ``asked`` until a reviewer answers or it lapses."""

    round: int
    state: str = "asked"


@dataclass(frozen=True, slots=True)
class Feedback:
    """A reviewer's words, quoted to the agent."""

    person: str
    kernel: str
    decision: str
    text: str


@dataclass(frozen=True, slots=True)
class Queued:
    """A further candidate of the asking in round ``round``; it waits for a round of its own."""

    candidate: Candidate
    normal_digest: str
    round: int


@dataclass(frozen=True, slots=True)
class CampaignState:
    """Everything that decides the next action. Build with ``start`` and move with ``step.apply`` only.

    ``attended`` is false on the command line: no reviewer exists there, so no spot checks and no reviews are asked,
    and nothing can be promoted. ``window_from`` is the round after which the plateau count starts anew.
    ``forbidden`` holds (direction, person); ``agent`` and ``budget`` are what people changed, ``None``: as the goal
    says.
    """

    goal: Goal
    operator_version: str
    baseline: SourceRef
    baseline_normal: str
    incumbent: Incumbent
    grant: Tier
    attended: bool = True
    status: Status = Status.RUNNING
    code: str = ""
    cause: str = ""
    rounds: tuple[Round, ...] = ()
    baseline_verdict: VerdictSummary | None = None
    baseline_faults: int = 0
    diagnosed: bool = False
    restructure: bool = False
    hypotheses: tuple[Hypothesis, ...] = ()
    struck: tuple[str, ...] = ()
    retry_round: int | None = None
    spot_checks: tuple[SpotCheck, ...] = ()
    reviewed: tuple[str, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    window_from: int = 0
    plateau: PlateauCause | None = None
    gave_up: str = ""
    seconds: float = 0.0
    tokens: int = 0
    money: float = 0.0
    turns: int = 0
    steering: tuple[Steer, ...] = ()
    forbidden: tuple[tuple[str, str], ...] = ()
    agent: AgentChoice | None = None
    budget: Budget | None = None
    queued: tuple[Queued, ...] = ()

    @classmethod
    def start(cls, goal: Goal, baseline: SourceRef, baseline_normal: str, operator_version: str, *,
              attended: bool = True) -> CampaignState:
        """A campaign before its baseline was measured. ``baseline_normal`` is the normal digest of its source.

        Raises:
            ValueError: the baseline's digest is not that of its source.
        """
        if digest_source(baseline.source) != baseline.digest:
            raise ValueError("the baseline's digest is not that of its source")
        incumbent = Incumbent(0, baseline, baseline_normal)
        return cls(goal, operator_version, baseline, baseline_normal, incumbent, goal.grant, attended=attended)

    @property
    def choice(self) -> AgentChoice:
        """Which agent, endpoint, model and effort work now. The kind never changes."""
        return self.agent or self.goal.agent

    @property
    def allowance(self) -> Budget:
        """What may be spent now."""
        return self.budget or self.goal.budget

    @property
    def spent(self) -> Spent:
        """What counts against the budget so far."""
        return Spent(self.tokens, self.money, self.turns, self.seconds, sum(r.evaluated for r in self.rounds),
                     len(self.concluded))

    @property
    def active_round(self) -> Round | None:
        """The round that runs, if any: never more than one."""
        last = self.rounds[-1] if self.rounds else None
        return last if last is not None and last.active else None

    def round(self, number: int) -> Round | None:
        """Round ``number``, or ``None``."""
        return next((r for r in self.rounds if r.number == number), None)

    @property
    def concluded(self) -> tuple[Round, ...]:
        """Rounds that count against the budget, in order."""
        return tuple(r for r in self.rounds if r.concluded)

    @property
    def improved(self) -> bool:
        """Whether some candidate beat the baseline: only then is there something to review."""
        return self.incumbent.round > 0
