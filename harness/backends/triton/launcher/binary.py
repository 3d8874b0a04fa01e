"""Compiled code of one launch. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Binary:
    """What the clean compile process made of one kernel: ``symbol`` in ``cubin``, warps and CTAs per program as the
    compiler left them (warp specialisation adds warps), bytes of dynamic shared memory."""

    symbol: str
    cubin: bytes = field(repr=False)
    num_warps: int
    num_ctas: int
    shared_bytes: int
