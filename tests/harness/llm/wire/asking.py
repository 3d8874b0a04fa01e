"""A transport to a strange server, with a memory of its own and no waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.agents.llm.endpoints import Endpoint
from harness.agents.llm.ports import Delta, Question
from harness.agents.llm.wire.learned import Memory
from harness.agents.llm.wire.retry import Patience, Slots
from harness.agents.llm.wire.transport import OpenAITransport
from harness.domain.turn import Answer

KEY = "sentinel-key-0123456789"


class Hasty(Patience):
    """Counts failures instead of seconds and does not wait: ``seconds`` tries are granted."""

    def __init__(self, seconds: float) -> None:
        super().__init__(1e9)
        self.granted = seconds

    def wait_s(self, asked: float | None) -> float | None:
        self.failures += 1
        return 0.0 if self.failures <= self.granted and (asked or 0.0) < 60 else None


class Asker:
    """Asks one server; ``deltas`` is what was told."""

    def __init__(self, url: str, *, key: bool = False, patience: Callable[[float], Patience] = Hasty,
                 **facts: Any) -> None:
        self.endpoint = Endpoint("test", url, "TEST_KEY" if key else None, **{"patience_s": 3.0, **facts})
        self.transport = OpenAITransport(self.endpoint, {"TEST_KEY": KEY}, memory=Memory(), slots=Slots(),
                                         patience=patience)
        self.deltas: list[Delta] = []

    def ask(self, *, cancelled: Callable[[], bool] = lambda: False, **changed: Any) -> Answer:
        question = Question(**{"model": "m", "messages": [{"role": "user", "content": "hi"}], **changed})
        return self.transport.ask(question, told=self.deltas.append, cancelled=cancelled)

