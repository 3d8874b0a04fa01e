"""What was found out about a model at an endpoint while asking: which parameters it refuses, which API it has."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Literal


@dataclass(slots=True)
class Traits:
    """Of one model at one address. ``refused`` names parameters to leave out; ``api`` is what answered."""

    refused: set[str] = field(default_factory=set)
    api: Literal["chat", "responses"] | None = None


class Memory:
    """Traits for the life of a process: after a restart each costs one refused request, which nobody pays for."""

    def __init__(self) -> None:
        self._traits: dict[tuple[str, str], Traits] = {}
        self._lock = threading.Lock()

    def refused(self, url: str, model: str) -> frozenset[str]:
        """Names of parameters that this model refuses."""
        with self._lock:
            return frozenset(self._of(url, model).refused)

    def refuse(self, url: str, model: str, parameter: str) -> None:
        """Remember a refused parameter."""
        with self._lock:
            self._of(url, model).refused.add(parameter)

    def api(self, url: str, model: str) -> Literal["chat", "responses"] | None:
        """The API that answered last, ``None`` while none has."""
        with self._lock:
            return self._of(url, model).api

    def answered(self, url: str, model: str, api: Literal["chat", "responses"]) -> None:
        """Remember the API that answered."""
        with self._lock:
            self._of(url, model).api = api

    def _of(self, url: str, model: str) -> Traits:
        return self._traits.setdefault((url, model), Traits())
