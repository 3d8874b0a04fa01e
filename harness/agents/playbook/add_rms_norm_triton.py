"""Strategies for add_rms_norm on Triton: one read of both rows, inputs that stay in the cache, a split reduction."""

from __future__ import annotations

from harness.agents.playbook import edit
from harness.agents.playbook.move import Move
from harness.agents.playbook.norm_triton import OFTEN, WIDTHS, RowKernel, by_bucket, launch_moves
from harness.agents.playbook.row_moves import long_rows
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

KERNEL = RowKernel("_add_rms_norm", ("x", "residual", "weight", "out", "residual_out", "cols", "eps", "BLOCK"))
WARPS = (4, 4, 16)
"""Of the buckets. Measured on an H200: 4096x4096 34.5 us with 4 warps, 34.8 with 8; 8192x8192 within 1 % with 4, 8 and
16, 16 the best where the inputs are marked evict-last (127.1 us; unmarked 130.6)."""
HINTS = """\
    READ: tl.constexpr = "evict_last" if BLOCK > 4096 else ""
    WRITTEN: tl.constexpr = "evict_first" if BLOCK > 4096 else ""
"""
FIRST = "    first = tl.program_id(0).to(tl.int64) * cols\n"
READ, WRITTEN = ", eviction_policy=READ", ", eviction_policy=WRITTEN"
GAINS = "        gains = tl.load(weight + lanes, mask=mask, other=0.0).to(tl.float32)\n"
SUM = "        kept += tl.load(residual + first + lanes, mask=mask, other=0.0).to(tl.float32)\n"
SCALE = "        scale = 1.0 / tl.sqrt(tl.sum(kept * kept, 0) / cols + eps)\n"
CLOSE = """\
        close = kept.to(x.dtype.element_ty).to(tl.float32)
        scale = 1.0 / tl.sqrt(tl.sum(close * close, 0) / cols + eps)
"""
# A row that BLOCK holds never meets the loops of wider ones, whose accumulators would take registers from it.
ONE_READ = FIRST + """\
    if cols <= BLOCK:
        lanes = tl.arange(0, BLOCK)
        mask = lanes < cols
        kept = tl.load(x + first + lanes, mask=mask, other=0.0).to(tl.float32)
""" + SUM + """\
        tl.store(residual_out + first + lanes, kept, mask=mask)
""" + GAINS + SCALE + """\
        tl.store(out + first + lanes, kept * scale * gains, mask=mask)
    else:
        steps = tl.arange(0, 1024)
        squares = tl.zeros([1024], tl.float32)
        for start in range(0, cols, 1024):
            offsets = start + steps
            inside = offsets < cols
            values = tl.load(x + first + offsets, mask=inside, other=0.0).to(tl.float32)
            values += tl.load(residual + first + offsets, mask=inside, other=0.0).to(tl.float32)
            tl.store(residual_out + first + offsets, values, mask=inside)
            squares += values * values
        factor = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols + eps)
        for start in range(0, cols, 1024):
            offsets = start + steps
            inside = offsets < cols
            values = tl.load(x + first + offsets, mask=inside, other=0.0).to(tl.float32)
            values += tl.load(residual + first + offsets, mask=inside, other=0.0).to(tl.float32)
            ups = tl.load(weight + offsets, mask=inside, other=0.0).to(tl.float32)
            tl.store(out + first + offsets, values * factor * ups, mask=inside)
"""
LOOKUP = """\
def run(x, residual, weight, out, residual_out, *, eps):
    rows, cols = x.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "short" if cols <= 1024 else "medium" if cols <= 4096 else "long"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
"""
PARTIAL = """\
@triton.jit
def _partial_sums(x, residual, residual_out, partial, cols, splits, span, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    lanes = tl.arange(0, BLOCK)
    last = tl.minimum((part + 1) * span, cols)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(part * span, last, BLOCK):
        offsets = start + lanes
        mask = offsets < last
        values = tl.load(x + row * cols + offsets, mask=mask, other=0.0).to(tl.float32)
        values += tl.load(residual + row * cols + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(residual_out + row * cols + offsets, values, mask=mask)
        squares += values * values
    tl.store(partial + row * splits + part, tl.sum(squares, 0))
"""
SPLIT = """\
@triton.jit
def _add_rms_norm(residual_out, weight, out, partial, cols, splits, eps, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, PARTS)
    squares = tl.load(partial + row * splits + parts, mask=parts < splits, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols + eps)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < cols
    values = tl.load(residual_out + row * cols + offsets, mask=mask, other=0.0).to(tl.float32)
    gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * cols + offsets, values * scale * gains, mask=mask)
"""
SPLIT_RUN = LOOKUP + """\
    splits = min(8, triton.cdiv(cols, block))
    span = triton.cdiv(triton.cdiv(cols, splits), block) * block
    splits = triton.cdiv(cols, span)
    partial = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
    _partial_sums[(rows, splits)](
        x, residual, residual_out, partial, cols, splits, span, BLOCK=block, num_warps=warps
    )
    _add_rms_norm[(rows, triton.cdiv(cols, block))](
        residual_out, weight, out, partial, cols, splits, eps, BLOCK=block, PARTS=8, num_warps=warps
    )
"""


def _stays_gain(context: AgentContext) -> float:
    """Measured on an H200: 130.6 to 127.1 us at 8192x8192; rows of 4096 columns stop paying for idle lanes."""
    held = edit.params(context.incumbent.source).get("BLOCK")
    return long_rows(context, 0.027, 0.01 if isinstance(held, int) and held > WIDTHS[1] else 0.0)


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone."""
    name = KERNEL.name
    return [
        Move("one-read", Direction.FUSION, name, Tier.MEDIUM,
             "Keep the sums of a row of up to BLOCK columns in registers between the mean square and the result and "
             "make BLOCK as wide as the rows: x and residual are read once instead of twice, a third of all traffic "
             "that reaches the second-level cache. The weight is asked for with them.",
             "the row's sum stays in registers; BLOCK 8192, 16 warps", 0.5, 0.45,
             KERNEL.replaced(ONE_READ, "kept", {"BLOCK": 8192, "num_warps": 16}), evidence="profile.bytes"),
        Move("inputs-stay", Direction.LAYOUT, name, Tier.MEDIUM,
             "Ask the second-level cache to keep x and residual of rows of more than 4096 columns, and the weight "
             "(evict-last), and to let results go first: lines of results leave soon and in order instead of waiting "
             "among the reads. A hypothesis from an H200's times alone: 127.1 instead of 130.6 us, and 128.2 where the "
             "results stay instead. BLOCK and warps are those of each bucket's rows.",
             "long rows of x and residual marked evict_last, their results evict_first; BLOCK and warps by bucket", 1.0,
             0.05,
             KERNEL.edited((FIRST, FIRST + HINTS),
                           ("tl.load(x + first + lanes, mask=mask, other=0.0)",
                            f"tl.load(x + first + lanes, mask=mask, other=0.0{READ})"),
                           ("tl.load(residual + first + lanes, mask=mask, other=0.0)",
                            f"tl.load(residual + first + lanes, mask=mask, other=0.0{READ})"),
                           ("tl.load(weight + lanes, mask=mask, other=0.0)",
                            f"tl.load(weight + lanes, mask=mask, other=0.0{OFTEN})"),
                           ("lanes, kept, mask=mask)", f"lanes, kept, mask=mask{WRITTEN})"),
                           ("* gains, mask=mask)", f"* gains, mask=mask{WRITTEN})"),
                           values=by_bucket(WARPS)), model=_stays_gain, evidence="profile.bytes"),
        Move("rounded-sum", Direction.PRECISION, name, Tier.MEDIUM,
             "Normalise the sum as it is handed out, rounded: both are right, and a row of the inputs' dtype takes "
             "half the registers while the program waits for its reduction. Risk: the compiler keeps it wide anyway.",
             "the row is kept rounded", 0.1, 0.004,
             KERNEL.edited((SCALE, CLOSE), ("lanes, kept * scale", "lanes, close * scale")),
             basis="occupancy"),
        Move("split-reduction", Direction.SPLIT_REDUCTION, name, Tier.HEAVY,
             "Split each row over several programs that add, store and square their part, combine them in a second "
             "kernel: few long rows then fill the device. Costs a read of the sum and a launch.",
             "partial sums over splits, then a combining kernel", 0.05, 0.004,
             KERNEL.relaunched(SPLIT, SPLIT_RUN, {"BLOCK": 1024, "num_warps": 4}, before=PARTIAL),
             evidence="hardware.multiprocessors"),
        *launch_moves(context, KERNEL, WARPS),
    ]
