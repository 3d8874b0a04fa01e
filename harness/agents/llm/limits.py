"""What one asking may cost: turns, tokens, money and seconds, and how many useless answers in a row."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.agents.errors import AgentError
from harness.agents.protocol import AgentContext

NEARLY_OVER = 3
"""From this many turns left on the model is told."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``None`` is no limit of that kind. ``wasted``: useless answers in a row; ``refused``: candidates
    and hypotheses that were sent back; ``answer_tokens``: of one answer, doubled once where an answer was cut off."""

    turns: int = 24
    tokens: int | None = None
    money: float | None = None
    seconds: float | None = 3600.0
    wasted: int = 3
    refused: int = 6
    answer_tokens: int = 16_384


@dataclass(slots=True)
class Paid:
    """What was paid: by answers of now and by kept ones that are used again."""

    turns: int = 0
    tokens: int = 0
    money: float = 0.0

    def add(self, other: Paid) -> None:
        """Put another sum on top."""
        self.turns += other.turns
        self.tokens += other.tokens
        self.money += other.money


def within_budget(context: AgentContext, limits: Limits = Limits(), samples: int = 1) -> Limits:
    """The limits of one sample of an asking, narrowed to what the campaign may still spend; samples share it."""
    allowed, spent = context.allowance, context.spent

    def share(most: float | None, used: float) -> float | None:
        return None if most is None else max(0.0, most - used) / samples

    tokens, turns = share(allowed.tokens, spent.tokens), share(allowed.turns, spent.turns)
    seconds = None if allowed.seconds is None else max(0.0, allowed.seconds - spent.seconds)
    return replace(
        limits,
        turns=int(_least(limits.turns, turns) or 0),
        tokens=_whole(_least(limits.tokens, tokens)),
        money=_least(limits.money, share(allowed.money, spent.money)),
        seconds=_least(limits.seconds, seconds),
    )


def _least(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return min(known) if known else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def check(limits: Limits, paid: Paid, seconds: float) -> None:
    """Asked before every question.

    Raises:
        AgentError: a limit is reached; the sentence names it. Blame ``model``: it did not come to an end.
    """
    if paid.turns >= limits.turns:
        raise AgentError(f"The model used the {limits.turns} turns of this asking without a proposal.")
    if limits.tokens is not None and paid.tokens >= limits.tokens:
        raise AgentError(f"The model used {paid.tokens:,} tokens without a proposal; the budget leaves "
                         f"{limits.tokens:,} for this asking.")
    if limits.money is not None and paid.money >= limits.money:
        raise AgentError(f"The model's answers cost {paid.money:.4f} without a proposal; the budget leaves "
                         f"{limits.money:.4f} for this asking.")
    if limits.seconds is not None and seconds >= limits.seconds:
        raise AgentError(f"The model worked {seconds:.0f} seconds without a proposal; {limits.seconds:.0f} are left "
                         "for this asking.")


def warning(limits: Limits, paid: Paid) -> str:
    """What the model is told when its turns run out, empty before that."""
    left = limits.turns - paid.turns
    if left > NEARLY_OVER:
        return ""
    return f"{left} turn{'s' if left != 1 else ''} left in this asking: call submit_candidate or give_up."
