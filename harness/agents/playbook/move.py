"""One strategy: what it changes, how far, where it applies, and what it predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.agents.protocol import AgentContext
from harness.domain.proposal import Hypothesis
from harness.domain.vocabulary import Direction, Tier


@dataclass(frozen=True, slots=True)
class Move:
    """A strategy of the playbook.

    ``reach`` is the share of the profile's headroom the strategy expects to win, ``most`` the largest gain its own
    reasoning supports (both fractions): the prediction is the smaller of ``reach * headroom`` and ``most``.
    ``transform`` returns the new source, or ``None`` where the strategy does not apply to the incumbent.
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
    evidence: str = "profile.roof_share"
    duplicate_of: int | None = None

    def expected_gain(self, context: AgentContext) -> float:
        """The predicted gain over the incumbent; where nothing was timed the strategy's own cap halved."""
        headroom = context.profile.headroom
        guess = self.most / 2 if headroom is None else min(self.most, self.reach * headroom)
        return round(guess, 3)

    def hypothesis(self, context: AgentContext) -> Hypothesis:
        """The strategy as a ranked idea, with the profile's sentence as its ground."""
        text = f"{self.text} Ground: {context.profile.text}."
        return Hypothesis(self.key, self.direction, self.function, text, self.evidence, self.expected_gain(context))

    @property
    def direction_key(self) -> str:
        """``<direction>:<function>``, the unit that closes."""
        return f"{self.direction}:{self.function}"
