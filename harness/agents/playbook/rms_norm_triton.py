"""Strategies for rms_norm on Triton: launch values, one read of the row, a split reduction with a combine step."""

from __future__ import annotations

from harness.agents.playbook import edit
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import table_move, value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = "_rms_norm"
ARGUMENTS = ("x", "weight", "out", "x_stride", "out_stride", "cols", "eps", "BLOCK")

ONE_READ = """\
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < cols
    kept = tl.load(x + row * x_stride + lanes, mask=mask, other=0.0).to(tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    squares += kept * kept
    for start in range(BLOCK, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
        squares += values * values
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols + eps)
    gains = tl.load(weight + lanes, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * out_stride + lanes, kept * scale * gains, mask=mask)
    for start in range(BLOCK, cols, BLOCK):
        offsets = start + lanes
        inside = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=inside, other=0.0).to(tl.float32)
        gains = tl.load(weight + offsets, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + row * out_stride + offsets, values * scale * gains, mask=inside)
"""
PARTIAL = """\
@triton.jit
def _partial_squares(x, partial, x_stride, cols, splits, span, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    lanes = tl.arange(0, BLOCK)
    first = part * span
    last = tl.minimum(first + span, cols)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(first, last, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < last, other=0.0).to(tl.float32)
        squares += values * values
    tl.store(partial + row * splits + part, tl.sum(squares, 0))
"""
SPLIT = """\
@triton.jit
def _rms_norm(
    x, weight, out, partial, x_stride, out_stride, cols, splits, eps, BLOCK: tl.constexpr, PARTS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, PARTS)
    squares = tl.load(partial + row * splits + parts, mask=parts < splits, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols + eps)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < cols
    values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
    gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * out_stride + offsets, values * scale * gains, mask=mask)
"""
SPLIT_RUN = """\
def run(x, weight, out, *, eps):
    rows, cols = x.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "short" if cols <= 1024 else "medium" if cols <= 4096 else "long"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    splits = min(8, triton.cdiv(cols, block))
    span = triton.cdiv(triton.cdiv(cols, splits), block) * block
    partial = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
    _partial_squares[(rows, splits)](x, partial, x.stride(0), cols, splits, span, BLOCK=block, num_warps=warps)
    _rms_norm[(rows, triton.cdiv(cols, block))](
        x,
        weight,
        out,
        partial,
        x.stride(0),
        out.stride(0),
        cols,
        splits,
        eps,
        BLOCK=block,
        PARTS=8,
        num_warps=warps,
    )
"""


def _fits(source: str) -> bool:
    return edit.argument_names(source, NAME) == ARGUMENTS


def _one_read(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or "kept" in edit.body_text(source, NAME):
        return None
    tunable = context.spec.tunable("BLOCK", context.goal.backend)
    block = min(8192, tunable.high) if tunable else 8192
    return edit.set_params(edit.replace_body(source, NAME, ONE_READ), {"BLOCK": block, "num_warps": 8})


def _split(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source):
        return None
    changed = edit.replace_function(source, NAME, SPLIT)
    changed = edit.insert_before(edit.replace_function(changed, "run", SPLIT_RUN), NAME, PARTIAL)
    changed = edit.set_params(changed, {"BLOCK": 1024, "num_warps": 4})
    return changed.replace("import triton\n", "import torch\nimport triton\n", 1)


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone."""
    return [
        Move("one-read", Direction.FUSION, NAME, Tier.MEDIUM,
             "Keep the first BLOCK columns in registers between the sum and the scaling, and make BLOCK as wide as the "
             "rows: x is read once instead of twice, a third of the traffic.",
             "the row stays in registers; BLOCK 8192, 8 warps", 0.5, 0.45, _one_read, evidence="profile.bytes"),
        Move("split-reduction", Direction.SPLIT_REDUCTION, NAME, Tier.HEAVY,
             "Split each row over several programs, store partial sums, combine them in a second kernel: few long rows "
             "then fill the device. Costs a second read of x and a launch.",
             "partial sums over splits, then a combining kernel", 0.2, 0.2, _split,
             evidence="hardware.multiprocessors"),
        value_move(context, NAME, "num_warps", 8, what="more loads in flight per program", reach=0.2, most=0.1,
                   direction=Direction.OCCUPANCY),
        value_move(context, NAME, "BLOCK", 4096, what="fewer loop steps, wider loads", reach=0.2, most=0.12),
        value_move(context, NAME, "BLOCK", 2048, what="fewer loop steps", reach=0.2, most=0.08),
        value_move(context, NAME, "BLOCK", 32768, what="a whole row per step whatever its length. Risk: the row may "
                   "not fit the registers", reach=0.2, most=0.06),
        value_move(context, NAME, "num_warps", 2, what="less synchronisation per row", reach=0.1, most=0.03,
                   direction=Direction.OCCUPANCY),
        value_move(context, NAME, "num_warps", 16, what="still more loads in flight", reach=0.1, most=0.02,
                   direction=Direction.OCCUPANCY),
        table_move(context, NAME, "BLOCK", reach=0.1, most=0.05),
    ]
