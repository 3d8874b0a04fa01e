"""One strategy: what it changes, how far, where it applies, and what it predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from harness.agents.profile import counted
from harness.agents.protocol import AgentContext
from harness.domain.proposal import Hypothesis
from harness.domain.vocabulary import Direction, Tier

ROOF_SHARE, COUNTERS = "profile.roof_share", "profile.counters"
"""Evidence of a hypothesis that rests on where the incumbent stands: counters, where the evaluation read them."""
Basis = Literal["bytes", "flops", "occupancy", "latency"]
"""What a hypothesis reckons in: memory traffic, arithmetic, work that is resident at once, or waiting."""

BASIS_OF: dict[Direction, Basis] = {
    Direction.TILING: "occupancy", Direction.VECTORISATION: "latency", Direction.OCCUPANCY: "occupancy",
    Direction.PIPELINING: "latency", Direction.SPLIT_REDUCTION: "occupancy", Direction.FUSION: "bytes",
    Direction.LAYOUT: "bytes", Direction.PRECISION: "flops", Direction.ALGORITHM: "flops", Direction.LAUNCH: "latency",
}
"""The basis of a strategy that names none."""


@dataclass(frozen=True, slots=True)
class Move:
    """A strategy of the playbook.

    ``reach`` is the share of the profile's headroom the strategy expects to win, ``most`` the largest gain its own
    reasoning supports (both fractions): the prediction is the smaller of ``reach * headroom`` and ``most``.
    ``model`` reckons that largest gain from the shapes and the profile where a number would not do (see
    ``arithmetic``). ``transform`` returns the new source, or ``None`` where the strategy does not apply to the
    incumbent. ``basis`` says what the hypothesis reckons in.
    """

    key: str
    direction: Direction
    function: str
    tier: Tier
    text: str
    summary: str
    reach: float
    most: float
    transform: Callable[[AgentContext], str | None]
    evidence: str = ROOF_SHARE
    duplicate_of: int | None = None
    basis: Basis | None = None
    model: Callable[[AgentContext], float] | None = None

    @property
    def about(self) -> Basis:
        """What the hypothesis reckons in."""
        return self.basis or BASIS_OF[self.direction]

    def expected_gain(self, context: AgentContext) -> float:
        """The predicted gain over the incumbent; where nothing was timed the strategy's own cap halved."""
        headroom = context.profile.headroom
        most = self.most if self.model is None else self.model(context)
        guess = most / 2 if headroom is None else min(most, self.reach * headroom)
        return round(guess, 3)

    def hypothesis(self, context: AgentContext) -> Hypothesis:
        """The strategy as a ranked idea: what its prediction reckons in, and the profile's sentence as its ground."""
        text = f"{self.text} Reckoned in {self.about}. Ground: {context.profile.text}."
        evidence = COUNTERS if self.evidence == ROOF_SHARE and counted(context.profile.counters) else self.evidence
        return Hypothesis(self.key, self.direction, self.function, text, evidence, self.expected_gain(context))

    @property
    def direction_key(self) -> str:
        """``<direction>:<function>``, the unit that closes."""
        return f"{self.direction}:{self.function}"
