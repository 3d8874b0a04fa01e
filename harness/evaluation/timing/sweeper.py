"""Driving everything out of the caches of the core that calls it."""

from __future__ import annotations

import torch

LEAST_BYTES = 96 << 20
CACHES = 3


class Sweeper:
    """Memory larger than the caches, written once so that it really lies in memory: pages nobody wrote are all the
    same page of zeros, and reading them sweeps nothing."""

    def __init__(self, last_level_bytes: int) -> None:
        self._memory = torch.ones(max(LEAST_BYTES, CACHES * last_level_bytes) // 4)

    @property
    def nbytes(self) -> int:
        """How much is swept."""
        return self._memory.nbytes

    def sweep(self) -> float:
        """Read all of it; returns the sum of its ones."""
        return float(self._memory.sum())
