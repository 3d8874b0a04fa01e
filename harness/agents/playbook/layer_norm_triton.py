"""Strategies for layer_norm on Triton: one read, one reduction, cache hints, rows in pairs, a split reduction."""

from __future__ import annotations

from harness.agents.playbook.move import Move
from harness.agents.playbook.norm_triton import OFTEN, ONCE, RowKernel, by_bucket, launch_moves
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

KERNEL = RowKernel("_layer_norm", ("x", "weight", "bias", "out", "x_stride", "out_stride", "cols", "eps", "BLOCK"))
WARPS = (4, 4, 8)
"""Of the buckets: two reductions wait for all warps of a program, so a row gets few."""
# A row that BLOCK holds never meets the loops of wider ones, whose accumulators would take registers from it.
HEAD = """\
    row = tl.program_id(0).to(tl.int64)
    if cols <= BLOCK:
        lanes = tl.arange(0, BLOCK)
        mask = lanes < cols
        kept = tl.load(x + row * x_stride + lanes, mask=mask, other=0.0).to(tl.float32)
"""
TAIL = """\
        gains = tl.load(weight + lanes, mask=mask, other=0.0).to(tl.float32)
        shifts = tl.load(bias + lanes, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row * out_stride + lanes, apart * scale * gains + shifts, mask=mask)
    else:
        steps = tl.arange(0, 1024)
        sums = tl.zeros([1024], tl.float32)
        for start in range(0, cols, 1024):
            offsets = start + steps
            sums += tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
        middle = tl.sum(sums, 0) / cols
        squares = tl.zeros([1024], tl.float32)
        for start in range(0, cols, 1024):
            offsets = start + steps
            inside = offsets < cols
            values = tl.load(x + row * x_stride + offsets, mask=inside, other=0.0).to(tl.float32)
            centred = tl.where(inside, values - middle, 0.0)
            squares += centred * centred
        factor = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols + eps)
        for start in range(0, cols, 1024):
            offsets = start + steps
            inside = offsets < cols
            values = tl.load(x + row * x_stride + offsets, mask=inside, other=0.0).to(tl.float32)
            ups = tl.load(weight + offsets, mask=inside, other=0.0).to(tl.float32)
            lifts = tl.load(bias + offsets, mask=inside, other=0.0).to(tl.float32)
            tl.store(out + row * out_stride + offsets, (values - middle) * factor * ups + lifts, mask=inside)
"""
ONE_READ = HEAD + """\
        mean = tl.sum(kept, 0) / cols
        apart = tl.where(mask, kept - mean, 0.0)
        scale = 1.0 / tl.sqrt(tl.sum(apart * apart, 0) / cols + eps)
""" + TAIL
SQUARES = HEAD + """\
        mean = tl.sum(kept, 0) / cols
        apart = kept - mean
        scale = 1.0 / tl.sqrt(tl.sum(kept * kept, 0) / cols - mean * mean + eps)
""" + TAIL
LOOKUP = """\
def run(x, weight, bias, out, *, eps):
    rows, cols = x.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "short" if cols <= 1024 else "medium" if cols <= 4096 else "long"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
"""
PAIRS = """\
@triton.jit
def _layer_norm(
    x, weight, bias, out, x_stride, out_stride, rows, cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    known = row < rows
    if cols <= BLOCK:
        lanes = tl.arange(0, BLOCK)[None, :]
        mask = (lanes < cols) & known
        kept = tl.load(x + row * x_stride + lanes, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        mean = tl.sum(kept, 1)[:, None] / cols
        apart = tl.where(mask, kept - mean, 0.0)
        scale = 1.0 / tl.sqrt(tl.sum(apart * apart, 1)[:, None] / cols + eps)
        gains = tl.load(weight + lanes, mask=lanes < cols, other=0.0, eviction_policy="evict_last").to(tl.float32)
        shifts = tl.load(bias + lanes, mask=lanes < cols, other=0.0, eviction_policy="evict_last").to(tl.float32)
        result = apart * scale * gains + shifts
        tl.store(out + row * out_stride + lanes, result, mask=mask, eviction_policy="evict_first")
    else:
        steps = tl.arange(0, 512)[None, :]
        sums = tl.zeros([ROWS, 512], tl.float32)
        for start in range(0, cols, 512):
            offsets = start + steps
            inside = (offsets < cols) & known
            sums += tl.load(x + row * x_stride + offsets, mask=inside, other=0.0).to(tl.float32)
        middle = tl.sum(sums, 1)[:, None] / cols
        squares = tl.zeros([ROWS, 512], tl.float32)
        for start in range(0, cols, 512):
            offsets = start + steps
            inside = (offsets < cols) & known
            values = tl.load(x + row * x_stride + offsets, mask=inside, other=0.0).to(tl.float32)
            centred = tl.where(inside, values - middle, 0.0)
            squares += centred * centred
        factor = 1.0 / tl.sqrt(tl.sum(squares, 1)[:, None] / cols + eps)
        for start in range(0, cols, 512):
            offsets = start + steps
            inside = (offsets < cols) & known
            values = tl.load(x + row * x_stride + offsets, mask=inside, other=0.0).to(tl.float32)
            ups = tl.load(weight + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
            lifts = tl.load(bias + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
            tl.store(out + row * out_stride + offsets, (values - middle) * factor * ups + lifts, mask=inside)
"""
PAIRS_RUN = LOOKUP + """\
    _layer_norm[(triton.cdiv(rows, 2),)](
        x, weight, bias, out, x.stride(0), out.stride(0), rows, cols, eps, ROWS=2, BLOCK=block, num_warps=warps
    )
"""
MOMENTS = """\
@triton.jit
def _partial_moments(x, means, spreads, x_stride, cols, splits, span, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    lanes = tl.arange(0, BLOCK)
    first = part * span
    last = tl.minimum(first + span, cols)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(first, last, BLOCK):
        offsets = start + lanes
        sums += tl.load(x + row * x_stride + offsets, mask=offsets < last, other=0.0).to(tl.float32)
    mean = tl.sum(sums, 0) / (last - first)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(first, last, BLOCK):
        offsets = start + lanes
        mask = offsets < last
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
        centred = tl.where(mask, values - mean, 0.0)
        squares += centred * centred
    tl.store(means + row * splits + part, mean)
    tl.store(spreads + row * splits + part, tl.sum(squares, 0))
"""
SPLIT = """\
@triton.jit
def _layer_norm(
    x,
    weight,
    bias,
    out,
    means,
    spreads,
    x_stride,
    out_stride,
    cols,
    splits,
    span,
    eps,
    BLOCK: tl.constexpr,
    PARTS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, PARTS)
    known = parts < splits
    counts = tl.where(known, tl.minimum(cols - parts * span, span), 0).to(tl.float32)
    middles = tl.load(means + row * splits + parts, mask=known, other=0.0)
    inner = tl.load(spreads + row * splits + parts, mask=known, other=0.0)
    anchor = tl.load(means + row * splits)
    mean = anchor + tl.sum(counts * tl.where(known, middles - anchor, 0.0), 0) / cols
    apart = tl.where(known, middles - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(inner + counts * apart * apart, 0) / cols + eps)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < cols
    values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
    gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
    shifts = tl.load(bias + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * out_stride + offsets, (values - mean) * scale * gains + shifts, mask=mask)
"""
SPLIT_RUN = LOOKUP + """\
    splits = min(8, triton.cdiv(cols, block))
    span = triton.cdiv(triton.cdiv(cols, splits), block) * block
    splits = triton.cdiv(cols, span)
    means = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
    spreads = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
    _partial_moments[(rows, splits)](
        x, means, spreads, x.stride(0), cols, splits, span, BLOCK=block, num_warps=warps
    )
    _layer_norm[(rows, triton.cdiv(cols, block))](
        x,
        weight,
        bias,
        out,
        means,
        spreads,
        x.stride(0),
        out.stride(0),
        cols,
        splits,
        span,
        eps,
        BLOCK=block,
        PARTS=8,
        num_warps=warps,
    )
"""


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone."""
    name = KERNEL.name
    return [
        Move("one-read", Direction.FUSION, name, Tier.MEDIUM,
             "Keep a row of up to BLOCK columns in registers from the mean to the result and make BLOCK as wide as the "
             "rows: x is read once instead of three times, half of all traffic that reaches the second-level cache.",
             "the row stays in registers; BLOCK 8192, 8 warps", 0.6, 0.8,
             KERNEL.replaced(ONE_READ, "kept", {"BLOCK": 8192, "num_warps": 8}), evidence="profile.bytes"),
        Move("fitted-stream", Direction.LAYOUT, name, Tier.MEDIUM,
             "Fit the launch to each row and say what comes back: no lanes beyond a bucket's widest row, few warps "
             "where little is reduced; x and the result pass through the caches once (evict-first), weight and bias "
             "are read by every row (evict-last), so that the second-level cache keeps them.",
             "BLOCK and warps by bucket; x and result evict-first, weight and bias evict-last", 0.4, 0.1,
             KERNEL.edited(("kept = tl.load(x + row * x_stride + lanes, mask=mask, other=0.0)",
                            f"kept = tl.load(x + row * x_stride + lanes, mask=mask, other=0.0{ONCE})"),
                           ("tl.load(weight + lanes, mask=mask, other=0.0)",
                            f"tl.load(weight + lanes, mask=mask, other=0.0{OFTEN})"),
                           ("tl.load(bias + lanes, mask=mask, other=0.0)",
                            f"tl.load(bias + lanes, mask=mask, other=0.0{OFTEN})"),
                           ("scale * gains + shifts, mask=mask)", f"scale * gains + shifts, mask=mask{ONCE})"),
                           values=by_bucket(WARPS))),
        Move("mean-of-squares", Direction.PRECISION, name, Tier.MEDIUM,
             "Take the variance as the mean square less the squared mean: one reduction less to wait for. Risk: where "
             "a row lies far from 0 the two cancel, and the bound demands two-pass accuracy.",
             "variance from the sums of values and squares", 0.3, 0.05,
             KERNEL.replaced(SQUARES, "kept * kept", needs="kept"), basis="latency"),
        Move("row-pairs", Direction.TILING, name, Tier.HEAVY,
             "Two rows per program of 16 warps: they share every weight and bias and wait for one pair of reductions "
             "together.",
             "two rows a program, 16 warps", 0.3, 0.05,
             KERNEL.relaunched(PAIRS, PAIRS_RUN, {"num_warps": 16}, needs="kept"), basis="latency"),
        Move("split-reduction", Direction.SPLIT_REDUCTION, name, Tier.HEAVY,
             "Split each row over several programs with a mean and a spread each, join them in a second kernel (Chan's "
             "formula): few long rows then fill the device. Costs a second read of x and a launch.",
             "partial means and spreads over splits, then a joining kernel", 0.2, 0.15,
             KERNEL.relaunched(SPLIT, SPLIT_RUN, {"BLOCK": 1024, "num_warps": 4}, before=MOMENTS),
             evidence="hardware.multiprocessors"),
        *launch_moves(context, KERNEL, WARPS),
    ]
