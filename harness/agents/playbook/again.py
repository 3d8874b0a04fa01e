"""A strategy that fails honestly: asking for a second look at a kernel that could not be told apart."""

from __future__ import annotations

from harness.agents.playbook.move import Move
from harness.agents.protocol import AgentContext, Attempt
from harness.domain.vocabulary import Comparison, Direction, Tier


def again_moves(context: AgentContext) -> list[Move]:
    """At most one, for the first undecided round: a naive expert would try it again, and the log refuses duplicates."""
    if any(attempt.hypothesis.startswith("again-") for attempt in context.attempts):
        return []
    undecided = [attempt for attempt in context.attempts
                 if attempt.verdict.passed and attempt.verdict.comparison is Comparison.CANNOT_TELL]
    return [_again(undecided[0])] if undecided else []


def _again(attempt: Attempt) -> Move:
    return Move(
        f"again-{attempt.round}", Direction.LAUNCH, attempt.direction.partition(":")[2],
        attempt.verdict.step_tier or Tier.MEDIUM,
        f"Round {attempt.round} could not be told apart from its incumbent; measure the same kernel once more.",
        f"the kernel of round {attempt.round}, unchanged", 0.01, 0.01,
        lambda _context: attempt.kernel.source, evidence=f"log.round {attempt.round}", duplicate_of=attempt.round,
    )
