"""What is sent, and what gathers the answer to it. Loads no HTTP client."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from harness.agents.llm.ports import Delta
from harness.agents.llm.wire.gather import Gathered


class Pieces(Protocol):
    """Gathers an answer in one of the two forms."""

    gathered: Gathered

    def feed(self, piece: Any) -> Iterable[Delta]:
        """Take one piece in."""
        ...


@dataclass(frozen=True, slots=True)
class Sending:
    """What is sent. ``sent`` names the optional parameters in it."""

    api: Literal["chat", "responses"]
    body: Mapping[str, Any]
    sent: Collection[str]
