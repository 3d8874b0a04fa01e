"""The rows as the agent's memory of its turns: what ``harness.agents.llm.ports.Turns`` asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from apps.campaigns import services
from apps.campaigns.models import Campaign
from apps.campaigns.turns.selectors import turns_of
from harness.agents.llm.redaction import forms, without
from harness.domain.codec import from_document, to_document
from harness.domain.turn import Turn

MOST_CHARACTERS = 400_000
"""Of one text in a turn; a longer one is cut with a note. An answer that long is of no use to anybody."""


class StoredTurns:
    """Turns of one campaign, written under the lease ``fence``. For the thread that asks alone.

    ``told`` hears of each turn after it was written; ``secrets`` are taken out of every text before.
    """

    def __init__(self, campaign: Campaign, fence: int, *, secrets: Sequence[str] = (),
                 told: Callable[[Turn], None] = lambda turn: None) -> None:
        self._campaign = campaign
        self._fence = fence
        self._secrets = forms(secrets)
        self._told = told

    def stored(self, round: int) -> tuple[Turn, ...]:
        """The turns of a round in order of (attempt, sample, number)."""
        return tuple(from_document(row.document, Turn) for row in turns_of(self._campaign, round))

    def keep(self, turn: Turn) -> None:
        """Write or replace a turn; on return it survives a kill.

        Raises:
            LeaseLost: another engine took over; nothing was written, and the asking ends.
        """
        document = self._fit(to_document(turn))
        services.turn_keep(campaign=self._campaign, fence=self._fence, document=document)
        self._told(turn)

    def _fit(self, value: Any) -> Any:
        if isinstance(value, str):
            text = without(value, self._secrets)
            over = len(text) - MOST_CHARACTERS
            return text if over <= 0 else f"{text[:MOST_CHARACTERS]}\n[{over:,} more characters were not kept]"
        if isinstance(value, dict):
            return {key: self._fit(item) for key, item in value.items()}
        return [self._fit(item) for item in value] if isinstance(value, list) else value
