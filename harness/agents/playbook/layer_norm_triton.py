"""Strategies for layer_norm on Triton: one read, two reads in blocks, cache hints, rows in pairs, a split reduction."""

from __future__ import annotations

from harness.agents.playbook import edit
from harness.agents.playbook.layer_norm_kernels import (
    MOMENTS,
    ONE_READ,
    PAIRS,
    PAIRS_RUN,
    SPLIT,
    SPLIT_RUN,
    SQUARES,
    STAYING,
    TWO_READS,
)
from harness.agents.playbook.move import Move
from harness.agents.playbook.norm_triton import WIDTHS, RowKernel, by_bucket, launch_moves
from harness.agents.playbook.row_moves import STAYS, long_rows
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

KERNEL = RowKernel("_layer_norm", ("x", "weight", "bias", "out", "x_stride", "out_stride", "cols", "eps", "BLOCK"))
WARPS = (4, 4, 4)
"""Of the buckets, where a row is held. Measured on an H200: 8192x8192 71.8 us with 4 warps, 74.1 with 8; 4096x4096 21.5
us with 4, 22.1 with 8."""
IN_BLOCKS = (4, 8, 8)
"""Of the buckets, where a row is read twice in blocks of 2048. Measured on an H200 with the row's first value as the
shift and columns that are constants: 66.2 us at 8192x8192, 20.5 at 4096x4096."""


def _over_held(context: AgentContext, long: float, narrow: float, idle: float) -> float:
    """``long`` and ``narrow`` as gains over rows that are held, ``idle`` instead of ``narrow`` where BLOCK leaves rows
    of 4096 columns half of its lanes; a trifle over any other kernel."""
    body = KERNEL.body(context.incumbent.source)
    if body is None or "about" in body or "STAY" in body or "kept" not in body:
        return 0.006
    held = edit.params(context.incumbent.source).get("BLOCK")
    return long_rows(context, long, idle if isinstance(held, int) and held > WIDTHS[1] else narrow)


def _two_reads_gain(context: AgentContext) -> float:
    """Measured on an H200: 74.1 to 66.2 us at 8192x8192; 27.2 to 20.5 at 4096x4096, 21.5 where no lanes idle."""
    return _over_held(context, 0.12, 0.05, 0.33)


def _stays_gain(context: AgentContext) -> float:
    """Measured on an H200: 74.1 to 71.8 us at 8192x8192 from the warps, 4 % from the marks as rms_norm and softmax gain
    by them; 27.2 to 21.5 at 4096x4096 where lanes idle."""
    return _over_held(context, 0.07, 0.0, 0.27)


def _pairs_gain(context: AgentContext) -> float:
    """Measured on an H200: 74.1 to 70.9 us at 8192x8192, 21.5 to 20.5 at 4096x4096, from 27.2 where lanes idle."""
    return _over_held(context, 0.045, 0.05, 0.33)


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone."""
    name = KERNEL.name
    return [
        Move("one-read", Direction.FUSION, name, Tier.MEDIUM,
             "Keep a row of up to BLOCK columns in registers from the mean to the result and make BLOCK as wide as the "
             "rows: x is read once instead of three times, half of all traffic that reaches the second-level cache.",
             "the row stays in registers; BLOCK 8192, 8 warps", 0.6, 0.8,
             KERNEL.replaced(ONE_READ, "kept", {"BLOCK": 8192, "num_warps": 8}), evidence="profile.bytes"),
        Move("two-reads", Direction.TILING, name, Tier.MEDIUM,
             "Read a row twice in blocks of 2048, the second time from the cache, and reduce once: sums of values and "
             "squares about the mean of the row's first 32 values. A thread holds 40 registers instead of 63, so "
             "that more rows are resident; long rows stay until their second read (evict-last, then evict-first), "
             "weight and bias stay, results stream.",
             "two reads in blocks of 2048, shifted sums, cache hints; BLOCK and warps by bucket", 1.0, 0.3,
             KERNEL.replaced(TWO_READS, "about", by_bucket(IN_BLOCKS), needs="kept"), model=_two_reads_gain,
             evidence="profile.bytes"),
        Move("results-stay", Direction.LAYOUT, name, Tier.MEDIUM,
             STAYS + " The row is held in registers by 4 warps.",
             "one read, long rows' results marked evict_last; BLOCK and warps by bucket", 1.0, 0.3,
             KERNEL.replaced(STAYING, "STAY", by_bucket(WARPS), needs="kept"), model=_stays_gain,
             evidence="profile.bytes"),
        Move("mean-of-squares", Direction.PRECISION, name, Tier.MEDIUM,
             "Take the variance as the mean square less the squared mean: one reduction less to wait for. Risk: where "
             "a row lies far from 0 the two cancel, and the bound demands two-pass accuracy.",
             "variance from the sums of values and squares", 0.1, 0.004,
             KERNEL.replaced(SQUARES, "kept * kept", needs="kept"), basis="latency"),
        Move("row-pairs", Direction.TILING, name, Tier.HEAVY,
             "Hold two rows per program: they share every weight and bias and wait for one pair of reductions "
             "together. Measured on an H200: 20.5 us at 4096x4096 with 8 warps, 70.9 at 8192x8192 with 4.",
             "two rows a program; BLOCK and warps by bucket", 1.0, 0.3,
             KERNEL.relaunched(PAIRS, PAIRS_RUN, by_bucket((4, 8, 4)), needs="kept"), model=_pairs_gain,
             basis="latency"),
        Move("split-reduction", Direction.SPLIT_REDUCTION, name, Tier.HEAVY,
             "Split each row over several programs with a mean and a spread each, join them in a second kernel (Chan's "
             "formula): few long rows then fill the device. Costs a second read of x and a launch.",
             "partial means and spreads over splits, then a joining kernel", 0.05, 0.004,
             KERNEL.relaunched(SPLIT, SPLIT_RUN, {"BLOCK": 1024, "num_warps": 4}, before=MOMENTS),
             evidence="hardware.multiprocessors"),
        *launch_moves(context, KERNEL, WARPS),
    ]
