"""When an agent cannot answer."""

from __future__ import annotations

from typing import Literal

from harness.domain.errors import HarnessError


class AgentError(HarnessError):
    """No proposal came. ``blame`` ``model``: the agent's own fault; ``provider``: its endpoint or host failed.

    ``tokens``, ``money`` and ``turns`` are what the asking cost all the same.
    """

    code = "agent_failed"

    def __init__(self, text: str, *, blame: Literal["model", "provider"] = "model", tokens: int = 0,
                 money: float = 0.0, turns: int = 0) -> None:
        super().__init__(text)
        self.blame: Literal["model", "provider"] = blame
        self.tokens = tokens
        self.money = money
        self.turns = turns


class AgentCancelled(HarnessError):
    """A person stopped the answer, the campaign is no longer running, or the server ends. Nothing is counted, and the
    agent is asked again when the campaign goes on."""

    code = "answer_stopped"
