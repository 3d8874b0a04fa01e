"""What a tool answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Mark:
    """How a campaign stood: its version and how many results it had."""

    campaign: int
    version: int
    results: int


@dataclass(frozen=True, slots=True)
class Reply:
    """``data`` is the answer as a document where it is one; ``mark`` is set where looking again may bring more."""

    text: str
    is_error: bool = False
    data: dict[str, Any] | None = None
    mark: Mark | None = None


def refused(code: str, text: str) -> Reply:
    """An error that the agent reads; ``code`` names the troubleshooting entry."""
    return Reply(text, is_error=True, data={"code": code, "text": text})
