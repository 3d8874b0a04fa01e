"""A person's words in the middle of a campaign, and what the campaign spent so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SteerKind = Literal["hint", "forbid", "allow", "restructure", "model"]


@dataclass(frozen=True, slots=True)
class Steer:
    """One thing a person asked of the agent. ``round`` is the number of rounds that had begun by then.

    ``text`` is the person's and may stand with every kind; ``direction`` goes with ``forbid`` and ``allow``:
    ``tiling:_kernel``, or ``tiling`` for every kernel function. Words of a person are a request, not rules.
    """

    kind: SteerKind
    person: str
    text: str = ""
    direction: str = ""
    round: int = 0


@dataclass(frozen=True, slots=True)
class Spent:
    """What counts against the budget so far. ``money`` is in the currency of the endpoint's prices."""

    tokens: int = 0
    money: float = 0.0
    turns: int = 0
    seconds: float = 0.0
    evaluations: int = 0
    rounds: int = 0
