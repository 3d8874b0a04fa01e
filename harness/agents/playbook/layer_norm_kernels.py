"""The bodies and kernels that the ladder gives layer_norm on Triton, as texts."""

from __future__ import annotations

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
STORED = "tl.store(out + row * out_stride + lanes, apart * scale * gains + shifts, mask=mask"
STAYING = (ONE_READ.replace(STORED, STORED + ", eviction_policy=STAY")
           .replace("    if cols", '    STAY: tl.constexpr = "evict_last" if BLOCK > 4096 else ""\n    if cols', 1))
BLOCKWISE = """\
    row = tl.program_id(0).to(tl.int64)
    near = tl.arange(0, 32)
    opening = tl.load(x + row * x_stride + near, mask=near < cols, other=0.0).to(tl.float32)
    about = tl.sum(opening, 0) / tl.minimum(cols, 32)
    STEP: tl.constexpr = 2048 if BLOCK > 2048 else BLOCK
    AGAIN: tl.constexpr = "evict_last" if BLOCK > 4096 else ""
    DONE: tl.constexpr = "evict_first" if BLOCK > 4096 else ""
    lanes = tl.arange(0, STEP)
    sums = tl.zeros([STEP], tl.float32)
    squares = tl.zeros([STEP], tl.float32)
{sums}\
    drift = tl.sum(sums, 0) / cols
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols - drift * drift + eps)
    mean = about + drift
{results}"""
SUMS = """\
            offsets = start + lanes
            mask = offsets < cols
            kept = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0, eviction_policy=AGAIN)
            apart = tl.where(mask, kept.to(tl.float32) - about, 0.0)
            sums += apart
            squares += apart * apart
"""
RESULTS = """\
            offsets = start + lanes
            mask = offsets < cols
            kept = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0, eviction_policy=DONE)
            gains = tl.load(weight + offsets, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
            lifts = tl.load(bias + offsets, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
            result = (kept.to(tl.float32) - mean) * scale * gains + lifts
            tl.store(out + row * out_stride + offsets, result, mask=mask, cache_modifier=".cs")
"""
FITTING = "        for start in tl.static_range(0, BLOCK, STEP):\n"
LONGER = "        for start in range(0, cols, STEP):\n"
# The mean of m of n values lies at most sqrt(n / m - 1) standard deviations from that of all: with 32 values of 8192
# the difference of the shifted sums loses 8 bits of float32 at worst, whatever the values are.
TWO_READS = BLOCKWISE.format(**{name: f"    if cols <= BLOCK:\n{FITTING}{text}    else:\n{LONGER}{text}"
                                for name, text in (("sums", SUMS), ("results", RESULTS))})
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
        kept = tl.load(x + row * x_stride + lanes, mask=mask, other=0.0).to(tl.float32)
        mean = tl.sum(kept, 1)[:, None] / cols
        apart = tl.where(mask, kept - mean, 0.0)
        scale = 1.0 / tl.sqrt(tl.sum(apart * apart, 1)[:, None] / cols + eps)
        gains = tl.load(weight + lanes, mask=lanes < cols, other=0.0, eviction_policy="evict_last").to(tl.float32)
        shifts = tl.load(bias + lanes, mask=lanes < cols, other=0.0, eviction_policy="evict_last").to(tl.float32)
        result = apart * scale * gains + shifts
        tl.store(out + row * out_stride + lanes, result, mask=mask)
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
