"""The rows as the agent's memory of its turns: what ``harness.agents.llm.ports.Turns`` asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from apps.campaigns import services
from apps.campaigns.models import Campaign
from apps.campaigns.turns.selectors import paid, turns_of
from harness.agents.errors import AgentError
from harness.agents.llm.redaction import forms, without
from harness.domain.codec import from_document, to_document
from harness.domain.goal import Budget
from harness.domain.turn import Turn

MOST_CHARACTERS = 400_000
"""Of one text in a turn; a longer one is cut with a note. An answer that long is of no use to anybody."""
MOST_OF_A_TURN = 2_000_000
"""Of all texts of a turn: an answer may have a hundred calls. What is beyond is left out of the last texts."""
SHORT = 200
"""Characters that every text keeps: names, digests and times are shorter."""


class StoredTurns:
    """Turns of one campaign, written under the lease ``fence``. For the thread that asks alone.

    ``told`` hears of each turn after it was written; ``secrets`` are taken out of every text before.
    """

    def __init__(self, campaign: Campaign, fence: int, *, secrets: Sequence[str] = (),
                 told: Callable[[Turn], None] = lambda turn: None, allowance: Budget | None = None) -> None:
        self._campaign = campaign
        self._fence = fence
        self._secrets = forms(secrets)
        self._told = told
        self._allowance = allowance or Budget()
        self._left = MOST_OF_A_TURN

    def stored(self, round: int) -> tuple[Turn, ...]:
        """The turns of a round in order of (attempt, sample, number)."""
        return tuple(from_document(row.document, Turn) for row in turns_of(self._campaign, round))

    def keep(self, turn: Turn) -> None:
        """Write or replace a turn; on return it survives a kill.

        Raises:
            LeaseLost: another engine took over; nothing was written, and the asking ends.
            AgentError: the turn would begin, but what all turns cost by now, stopped ones too, has spent the budget.
        """
        if turn.status == "open":
            self._check_budget()
        self._left = MOST_OF_A_TURN
        document = self._fit(to_document(turn))
        services.turn_keep(campaign=self._campaign, fence=self._fence, document=document)
        self._told(turn)

    def _check_budget(self) -> None:
        """The engine counts what an asking cost when it comes to an end. One that is stopped and asked again, over and
        over, comes to none."""
        so_far, most = paid(self._campaign), self._allowance
        for name, spent, limit in (("tokens", so_far.tokens, most.tokens), ("turns", so_far.turns, most.turns),
                                   ("of the money", so_far.money, most.money)):
            if limit is not None and spent >= limit:
                raise AgentError(f"{spent:g} of {limit:g} {name} are spent, answers that were stopped included, so "
                                 "nothing more was asked.")

    def _fit(self, value: Any) -> Any:
        if isinstance(value, str):
            text = without(value, self._secrets)
            most = min(MOST_CHARACTERS, max(self._left, SHORT))
            over = len(text) - most
            self._left -= min(len(text), most)
            return text if over <= 0 else f"{text[:most]}\n[{over:,} more characters were not kept]"
        if isinstance(value, dict):
            return {key: self._fit(item) for key, item in value.items()}
        return [self._fit(item) for item in value] if isinstance(value, list) else value
