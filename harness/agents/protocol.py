"""What an agent is given and what it must answer. Agents know no engine, no evaluator and no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from harness.agents.profile import Profile
from harness.domain.goal import AgentChoice, Budget, Goal
from harness.domain.log import LogEntry
from harness.domain.proposal import Hypothesis, Proposal
from harness.domain.request import SourceRef
from harness.domain.steering import Spent, Steer
from harness.domain.summary import VerdictSummary
from harness.domain.vocabulary import Tier
from harness.operators.base import OperatorSpec

AskPurpose = Literal["diagnosis", "candidate", "restructure"]


class LogBook:
    """The experiment log as an agent may read it. ``queries`` counts the reads of this turn: the runner's evidence for
    rule R7, whatever the agent says of itself."""

    def __init__(self, entries: tuple[LogEntry, ...] = ()) -> None:
        self._entries = entries
        self.queries = 0

    @property
    def entries(self) -> tuple[LogEntry, ...]:
        """All entries in round order for whoever writes about the log; looking here is no query of the agent's."""
        return self._entries

    def query(self, *, direction: str | None = None) -> tuple[LogEntry, ...]:
        """All entries in round order, or those of one direction key (``tiling:_kernel``)."""
        self.queries += 1
        return tuple(entry for entry in self._entries if direction is None or entry.direction == direction)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One concluded round: the kernel that was tried and what came out. ``normal_digest`` is ``None`` where the source
    does not parse; a round concluded by bounces has no attempt."""

    round: int
    hypothesis: str
    direction: str
    kernel: SourceRef
    normal_digest: str | None
    verdict: VerdictSummary


@dataclass(frozen=True, slots=True)
class ReviewComment:
    """A reviewer's words about a kernel, to be taken as a request by a person, not as instructions about the rules."""

    person: str
    kernel: str
    decision: str
    text: str


@dataclass(frozen=True, slots=True)
class AgentContext:
    """Everything an agent may know in one turn.

    ``grant`` bounds the tier of a change from ``incumbent``. ``hypotheses`` are all stated ones that nobody struck, in
    rank order; ``open_hypotheses`` those not yet tried whose direction is open. ``closed_directions`` maps direction
    keys to the rounds that closed them. ``hardware`` is the hardware digest as facts by name. ``bounced`` says why
    earlier answers of this same round were sent back.

    ``steering`` is what people asked of the agent, oldest first. ``forbidden`` maps directions that a person forbade
    (``tiling:_kernel``, or ``tiling`` for every kernel function) to that person's name: a candidate there is bounced.
    ``agent`` is the campaign's choice of agent after people changed endpoint, model or effort, ``budget`` what it may
    spend after people raised it (``None``: as the goal says), ``spent`` what it did.
    """

    goal: Goal
    spec: OperatorSpec
    grant: Tier
    round: int
    purpose: AskPurpose
    log: LogBook
    baseline: SourceRef
    incumbent: SourceRef
    incumbent_round: int
    incumbent_normal: str
    baseline_verdict: VerdictSummary | None
    incumbent_verdict: VerdictSummary | None
    profile: Profile
    hardware: Mapping[str, object] = field(default_factory=dict)
    hypotheses: tuple[Hypothesis, ...] = ()
    open_hypotheses: tuple[Hypothesis, ...] = ()
    struck: tuple[str, ...] = ()
    closed_directions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    retry_available: bool = True
    tried: Mapping[str, int] = field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()
    feedback: tuple[ReviewComment, ...] = ()
    bounced: tuple[str, ...] = ()
    steering: tuple[Steer, ...] = ()
    forbidden: Mapping[str, str] = field(default_factory=dict)
    spent: Spent = Spent()
    agent: AgentChoice | None = None
    budget: Budget | None = None

    @property
    def attempt(self) -> int:
        """Which asking of this round it is, from 1: every answer that was sent back led to another."""
        return len(self.bounced) + 1

    @property
    def choice(self) -> AgentChoice:
        """Which agent, endpoint, model and effort work now."""
        return self.agent or self.goal.agent

    @property
    def allowance(self) -> Budget:
        """What may be spent now."""
        return self.budget or self.goal.budget

    @property
    def threads(self) -> int:
        """CPU threads of the timed hardware from its name (``...-4t``), 1 where the name says nothing."""
        tail = self.goal.hardware.rpartition("-")[2]
        return int(tail[:-1]) if tail.endswith("t") and tail[:-1].isdigit() else 1


class Agent(Protocol):
    """Proposes; only measurements decide. Scripted agents are deterministic functions of the context."""

    label: str

    def propose(self, context: AgentContext) -> Proposal:
        """One answer. May raise ``AgentError``."""
        ...
