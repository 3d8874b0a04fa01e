"""What an agent hands to the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from harness.domain.vocabulary import Direction


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A ranked idea. ``expected_gain`` is a fraction over the incumbent (0.35 is +35 %)."""

    id: str
    direction: Direction
    function: str
    text: str
    evidence: str
    expected_gain: float


@dataclass(frozen=True, slots=True)
class Claim:
    """What the agent says it gained; stored beside the measurement and never trusted."""

    gain: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed kernel. A retry of a failed direction names its round and the essential difference."""

    hypothesis: str
    source: str
    change_summary: str
    retry_of: int | None = None
    essential_difference: str | None = None
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """One answer of an agent: hypotheses, a candidate (with hypotheses in round 1), or giving up with a reason.

    ``alternatives`` are further candidates of the same asking; each that is new becomes a round of its own afterwards.
    """

    kind: Literal["hypotheses", "candidate", "give_up"]
    queried_log: bool
    hypotheses: tuple[Hypothesis, ...] = ()
    candidate: Candidate | None = None
    reason: str = ""
    trace: dict[str, Any] | None = None  # agent-specific record (turns, tokens), shown but never interpreted
    alternatives: tuple[Candidate, ...] = ()
    version: int = 1

    def __post_init__(self) -> None:
        if self.kind == "candidate" and self.candidate is None:
            raise ValueError("a candidate proposal needs a candidate")
