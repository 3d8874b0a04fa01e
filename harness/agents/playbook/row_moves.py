"""What the ladders of row-wise operators on Triton share: tables over buckets, and models of what limits a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.agents.playbook import edit
from harness.agents.playbook.arithmetic import call_us, fill, over_shapes
from harness.agents.playbook.move import Basis, Move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier
from harness.operators.base import Dims

MISS_US = 0.7
"""What a load that misses all caches makes its block wait, about; between two of them nothing else runs."""
STAYS = ("Ask the second-level cache to keep the results of rows of more than 4096 columns (evict-last): they are then "
         "not written back among the reads, what comes next finds the last of them there, and a part is written back "
         "after the kernel's end. So a part of the gain is a later write-back, not less traffic.")
"""Why marking results helps, as far as an H200's times tell; counters were not read."""


def table(context: AgentContext, function: str, name: str, values: Mapping[str, Mapping[str, int]], *, text: str,
          direction: Direction, model: Callable[[AgentContext], float], basis: Basis,
          applies: Callable[[str], bool]) -> Move:
    """PARAMS tables over the operator's buckets, by key; keys that the kernel lacks or that hold the table already make
    it inapplicable."""
    def transform(now: AgentContext) -> str | None:
        source = now.incumbent.source
        held = edit.params(source)
        wanted = {key: dict(row) for key, row in values.items()}
        if not applies(source) or not set(wanted) <= set(held) or all(held[key] == wanted[key] for key in wanted):
            return None
        return edit.set_params(source, wanted)

    told = ", ".join(f"{key} by bucket: {'/'.join(map(str, row.values()))}" for key, row in values.items())
    return Move(name, direction, function, Tier.LIGHT, text, told, 1.0, 0.1, transform, evidence="tunables",
                basis=basis, model=model)


def one_wait_less(context: AgentContext) -> float:
    """The gain where a block waits for memory once instead of twice: as much as the wait is of a call in which every
    multiprocessor has a block or less, nothing where others run meanwhile."""
    def speedup(dims: Dims) -> float:
        us = call_us(context, dims)
        return us / (us - MISS_US) if fill(dims["rows"], context) < 1.0 and us > 2 * MISS_US else 1.0

    return over_shapes(context, speedup)


def less_traffic(share: float) -> Callable[[AgentContext], float]:
    """The gain of moving ``share`` of the bytes where the device is full; nothing where few rows wait for latency."""
    return lambda context: over_shapes(context, lambda dims: 1.0 / share if fill(dims["rows"], context) == 1.0 else 1.0)


def long_rows(context: AgentContext, long: float, narrow: float = 0.0) -> float:
    """``long`` as the gain on the shapes whose rows are wider than 4096 and more than the device runs at once,
    ``narrow`` on those that are not wider."""
    def speedup(dims: Dims) -> float:
        if dims["cols"] <= 4096:
            return 1.0 + narrow
        return 1.0 + long if dims["cols"] <= 16384 and fill(dims["rows"], context) == 1.0 else 1.0

    return over_shapes(context, speedup)


def wide_rows(context: AgentContext, width: int, gain: float) -> float:
    """``gain`` on the shapes whose rows are at most ``width`` wide: they had lanes without work."""
    return over_shapes(context, lambda dims: 1.0 + gain if dims["cols"] <= width else 1.0)
