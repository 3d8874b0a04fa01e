"""Durable events of a stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.domain.vocabulary import EventKind


@dataclass(frozen=True, slots=True)
class Event:
    """One state change.

    ``stream`` is ``campaign:<id>`` or ``team:<id>``; ``seq`` has no gaps; ``at`` is ISO 8601 UTC.
    """

    stream: str
    seq: int
    kind: EventKind
    at: str
    data: dict[str, Any] = field(default_factory=dict)
    v: int = 1
