"""When an agent cannot answer."""

from __future__ import annotations

from typing import Literal

from harness.domain.errors import HarnessError


class AgentError(HarnessError):
    """No proposal came. ``blame`` ``model``: the agent's own fault; ``provider``: its endpoint or host failed."""

    code = "agent_failed"

    def __init__(self, text: str, *, blame: Literal["model", "provider"] = "model") -> None:
        super().__init__(text)
        self.blame: Literal["model", "provider"] = blame
