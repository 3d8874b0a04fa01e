"""Strategies for decode_attention on Triton: launch values, powers of two, and a cache split over programs."""

from __future__ import annotations

from harness.agents.playbook import edit
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import table_move, value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = "_attend"

PARTIAL = """\
@triton.jit
def _attend(
    q,
    k_cache,
    v_cache,
    seq_lens,
    gathered_parts,
    top_parts,
    total_parts,
    max_seq,
    kv_heads,
    q_heads,
    dim,
    scale,
    splits,
    span,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    item = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    part = tl.program_id(2)
    source = head // (q_heads // kv_heads)
    length = tl.load(seq_lens + item)
    first = part * span
    last = tl.minimum(first + span, length)
    columns = tl.arange(0, BLOCK_D)
    inside = columns < dim
    query = tl.load(q + (item * q_heads + head) * dim + columns, mask=inside, other=0.0).to(tl.float32)
    top = float("-inf")
    total = 0.0
    gathered = tl.zeros([BLOCK_D], tl.float32)
    for start in range(first, last, BLOCK_N):
        positions = start + tl.arange(0, BLOCK_N)
        valid = positions < last
        rows = (item * max_seq + positions[:, None]) * kv_heads + source
        cells = rows * dim + columns[None, :]
        mask = valid[:, None] & inside[None, :]
        keys = tl.load(k_cache + cells, mask=mask, other=0.0).to(tl.float32)
        scores = tl.sum(keys * query[None, :], 1) * scale
        scores = tl.where(valid, scores, float("-inf"))
        highest = tl.maximum(top, tl.max(scores, 0))
        shares = tl.exp(scores - highest)
        shrink = tl.exp(top - highest)
        values = tl.load(v_cache + cells, mask=mask, other=0.0).to(tl.float32)
        gathered = gathered * shrink + tl.sum(shares[:, None] * values, 0)
        total = total * shrink + tl.sum(shares, 0)
        top = highest
    slot = (item * q_heads + head) * splits + part
    tl.store(gathered_parts + slot * dim + columns, gathered, mask=inside)
    tl.store(top_parts + slot, top)
    tl.store(total_parts + slot, total)
"""
COMBINE = """\
@triton.jit
def _combine(
    gathered_parts, top_parts, total_parts, out, q_heads, dim, splits, PARTS: tl.constexpr, BLOCK_D: tl.constexpr
):
    slot = (tl.program_id(0).to(tl.int64) * q_heads + tl.program_id(1)) * splits
    parts = tl.arange(0, PARTS)
    known = parts < splits
    columns = tl.arange(0, BLOCK_D)
    inside = columns < dim
    tops = tl.load(top_parts + slot + parts, mask=known, other=float("-inf"))
    totals = tl.load(total_parts + slot + parts, mask=known, other=0.0)
    highest = tl.max(tops, 0)
    weights = tl.where(tops == float("-inf"), 0.0, tl.exp(tops - highest))
    total = tl.sum(totals * weights, 0)
    cells = (slot + parts[:, None]) * dim + columns[None, :]
    gathered = tl.load(gathered_parts + cells, mask=known[:, None] & inside[None, :], other=0.0)
    result = tl.where(total > 0.0, tl.sum(gathered * weights[:, None], 0) / total, 0.0)
    target = out + (tl.program_id(0).to(tl.int64) * q_heads + tl.program_id(1)) * dim
    tl.store(target + columns, result, mask=inside)
"""
RUN = """\
def run(q, k_cache, v_cache, seq_lens, out, *, scale):
    batch, q_heads, dim = q.shape
    max_seq, kv_heads = k_cache.shape[1], k_cache.shape[2]
    block, warps, stages = PARAMS["BLOCK_N"], PARAMS["num_warps"], PARAMS["num_stages"]
    bucket = "short" if max_seq <= 512 else "medium" if max_seq <= 2048 else "long"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    if isinstance(stages, dict):
        stages = stages[bucket]
    splits = min(16, triton.cdiv(max_seq, block))
    span = triton.cdiv(triton.cdiv(max_seq, splits), block) * block
    width = triton.next_power_of_2(dim)
    gathered_parts = torch.empty((batch, q_heads, splits, dim), dtype=torch.float32, device=q.device)
    top_parts = torch.empty((batch, q_heads, splits), dtype=torch.float32, device=q.device)
    total_parts = torch.empty((batch, q_heads, splits), dtype=torch.float32, device=q.device)
    _attend[(batch, q_heads, splits)](
        q,
        k_cache,
        v_cache,
        seq_lens,
        gathered_parts,
        top_parts,
        total_parts,
        max_seq,
        kv_heads,
        q_heads,
        dim,
        scale,
        splits,
        span,
        BLOCK_N=block,
        BLOCK_D=width,
        num_warps=warps,
        num_stages=stages,
    )
    _combine[(batch, q_heads)](
        gathered_parts, top_parts, total_parts, out, q_heads, dim, splits, PARTS=16, BLOCK_D=width, num_warps=4
    )
"""


def _powers_of_two(context: AgentContext) -> str | None:
    """exp(a) as exp2(a / ln 2) with the constant folded into the scale."""
    source = context.incumbent.source
    body = edit.body_text(source, NAME)
    if "tl.exp(" not in body or "* scale\n" not in body:
        return None
    changed = body.replace("tl.exp(", "tl.exp2(").replace("* scale\n", "* (scale * 1.4426950408889634)\n")
    return edit.replace_body(source, NAME, changed)


def _split(context: AgentContext) -> str | None:
    source = context.incumbent.source
    arguments = edit.argument_names(source, NAME)
    if "splits" in arguments or not {"q", "k_cache", "v_cache", "seq_lens", "out", "max_seq"} <= set(arguments):
        return None
    if not {"BLOCK_N", "num_warps", "num_stages"} <= set(edit.params(source)):
        return None
    kernel = PARTIAL
    if "tl.exp2(" in edit.body_text(source, NAME):
        kernel = kernel.replace("tl.exp(", "tl.exp2(").replace("* scale\n", "* (scale * 1.4426950408889634)\n")
    combine = COMBINE.replace("tl.exp(", "tl.exp2(") if kernel is not PARTIAL else COMBINE
    changed = edit.replace_function(edit.replace_function(source, NAME, kernel), "run", RUN)
    return edit.insert_before(changed, "run", combine).replace("import triton\n", "import torch\nimport triton\n", 1)


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone."""
    return [
        Move("split-cache", Direction.SPLIT_REDUCTION, NAME, Tier.HEAVY,
             "Split every sequence over up to 16 programs with a running maximum and sum each, combine them in a "
             "second kernel: a decode batch alone has too few programs to fill the device.",
             "cache split over programs, then a combining kernel", 0.7, 1.0, _split,
             evidence="hardware.multiprocessors"),
        Move("powers-of-two", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Take exponentials to base two with the constant folded into the scale: a multiplication less per score.",
             "exp2 with the scale folded in", 0.1, 0.03, _powers_of_two),
        value_move(context, NAME, "BLOCK_N", 128, what="fewer rescalings, more loads in flight", reach=0.2, most=0.12),
        value_move(context, NAME, "num_stages", 3, what="loads run further ahead of the arithmetic", reach=0.2,
                   most=0.1,
                   direction=Direction.PIPELINING),
        value_move(context, NAME, "num_warps", 8, what="more loads in flight per program", reach=0.1, most=0.06,
                   direction=Direction.OCCUPANCY),
        value_move(context, NAME, "num_warps", 2, what="less synchronisation in each reduction", reach=0.1, most=0.05,
                   direction=Direction.OCCUPANCY),
        value_move(context, NAME, "BLOCK_N", 32, what="fewer registers, more programs per multiprocessor", reach=0.1,
                   most=0.04),
        value_move(context, NAME, "BLOCK_N", 256, what="still fewer rescalings. Risk: the block may not fit the "
                   "registers", reach=0.1, most=0.03),
        table_move(context, NAME, "BLOCK_N", reach=0.1, most=0.05),
    ]
