"""A device for the libraries' process without one: graphs are lists, time is a counter."""

from __future__ import annotations

from typing import Any

import torch

from harness.peers.places import Calls, Outputs, fill


class StubPlace:
    """Every call costs one unit of ``clock`` microseconds per prepared call; captured calls run at their sample."""

    device, cache_bytes, memory_bytes, most_slots = "cpu", 4096, 1 << 30, 256

    def __init__(self) -> None:
        self.prepared: list[tuple[bool, int]] = []

    def batch(self, us: float) -> int:
        return 2

    def common(self) -> Any:
        return object()

    def prepare(self, calls: Calls, *, graph: bool, shared: Any) -> StubPrepared:
        self.prepared.append((graph, len(calls)))
        return StubPrepared(calls)

    def rest(self) -> None:
        return None


class StubPrepared:
    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.left: list[Outputs] = []

    def spoil(self) -> None:
        fill(self.left)

    def sample(self) -> float:
        self.left = [call() for call in self.calls]
        return 3.0 * len(self.calls)

    def last(self) -> Outputs:
        return self.left[-1]


def table() -> torch.Tensor:
    """Factors as a session draws them."""
    return torch.rand(1_000_003, generator=torch.Generator().manual_seed(7)) * 0.25 + 0.75
