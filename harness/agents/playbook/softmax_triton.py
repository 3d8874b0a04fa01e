"""Strategies for softmax on Triton: launch values, the online form, one read of the row, a split reduction."""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.playbook import edit
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import table_move, value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = "_softmax"
ARGUMENTS = ("x", "out", "x_stride", "out_stride", "cols", "BLOCK")

SECOND_LOOP = """\
    for start in range({first}, cols, BLOCK):
        offsets = start + lanes
        inside = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=inside, other=float("-inf")).to(tl.float32)
        tl.store(out + row * out_stride + offsets, tl.exp(values - top) / total, mask=inside)
"""
ONLINE = """\
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    top = float("-inf")
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=float("-inf")).to(tl.float32)
        highest = tl.maximum(top, tl.max(values, 0))
        safe = tl.where(highest == float("-inf"), 0.0, highest)
        sums = sums * tl.exp(top - safe) + tl.exp(values - safe)
        top = highest
    total = tl.sum(sums, 0)
"""
ONE_READ = """\
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < cols
    kept = tl.load(x + row * x_stride + lanes, mask=mask, other=float("-inf")).to(tl.float32)
    tops = kept
    for start in range(BLOCK, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=float("-inf")).to(tl.float32)
        tops = tl.maximum(tops, values)
    top = tl.max(tops, 0)
    shares = tl.exp(kept - top)
    sums = tl.zeros([BLOCK], tl.float32)
    sums += shares
    for start in range(BLOCK, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=float("-inf")).to(tl.float32)
        sums += tl.exp(values - top)
    total = tl.sum(sums, 0)
    tl.store(out + row * out_stride + lanes, shares / total, mask=mask)
"""
PARTIAL = """\
@triton.jit
def _partial_softmax(x, tops, sums, x_stride, cols, splits, span, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    lanes = tl.arange(0, BLOCK)
    first = part * span
    last = tl.minimum(first + span, cols)
    highest = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(first, last, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < last, other=float("-inf")).to(tl.float32)
        highest = tl.maximum(highest, values)
    top = tl.max(highest, 0)
    safe = tl.where(top == float("-inf"), 0.0, top)
    gathered = tl.zeros([BLOCK], tl.float32)
    for start in range(first, last, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < last, other=float("-inf")).to(tl.float32)
        gathered += tl.exp(values - safe)
    tl.store(tops + row * splits + part, top)
    tl.store(sums + row * splits + part, tl.sum(gathered, 0))
"""
SPLIT = """\
@triton.jit
def _softmax(x, out, tops, sums, x_stride, out_stride, cols, splits, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, PARTS)
    known = parts < splits
    peaks = tl.load(tops + row * splits + parts, mask=known, other=float("-inf"))
    shares = tl.load(sums + row * splits + parts, mask=known, other=0.0)
    top = tl.max(peaks, 0)
    total = tl.sum(tl.where(peaks == float("-inf"), shares, shares * tl.exp(peaks - top)), 0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < cols
    values = tl.load(x + row * x_stride + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    tl.store(out + row * out_stride + offsets, tl.exp(values - top) / total, mask=mask)
"""
SPLIT_RUN = """\
def run(x, out):
    rows, cols = x.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "short" if cols <= 1024 else "medium" if cols <= 4096 else "long" if cols <= 16384 else "vocabulary"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    splits = min(8, triton.cdiv(cols, block))
    span = triton.cdiv(triton.cdiv(cols, splits), block) * block
    tops = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
    sums = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
    _partial_softmax[(rows, splits)](x, tops, sums, x.stride(0), cols, splits, span, BLOCK=block, num_warps=warps)
    _softmax[(rows, triton.cdiv(cols, block))](
        x, out, tops, sums, x.stride(0), out.stride(0), cols, splits, BLOCK=block, PARTS=8, num_warps=warps
    )
"""


def _fits(source: str) -> bool:
    return edit.argument_names(source, NAME) == ARGUMENTS


def _body(text: str, marker: str, values: dict[str, int] | None = None) -> Callable[[AgentContext], str | None]:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        if not _fits(source) or marker in edit.body_text(source, NAME):
            return None
        changed = edit.replace_body(source, NAME, text)
        return edit.set_params(changed, values) if values else changed
    return transform


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
             "Keep the first BLOCK columns and their exponentials in registers and make BLOCK as wide as the rows: x "
             "is read once instead of three times and each exponential is taken once.",
             "the row stays in registers; BLOCK 8192, 8 warps", 0.6, 0.8,
             _body(ONE_READ + SECOND_LOOP.format(first="BLOCK"), "kept", {"BLOCK": 8192, "num_warps": 8}),
             evidence="profile.bytes"),
        Move("online-maximum", Direction.ALGORITHM, NAME, Tier.MEDIUM,
             "Find maximum and sum in one loop, rescaling the sum when the maximum grows: two reads of x instead of "
             "three.",
             "running maximum and sum in one loop", 0.3, 0.3,
             _body(ONLINE + SECOND_LOOP.format(first="0"), "highest"), evidence="profile.bytes"),
        Move("split-reduction", Direction.SPLIT_REDUCTION, NAME, Tier.HEAVY,
             "Split each row over several programs with a maximum and a sum each, combine them in a second kernel: few "
             "long rows then fill the device. Costs one more launch.",
             "partial maxima and sums over splits, then a combining kernel", 0.2, 0.2, _split,
             evidence="hardware.multiprocessors"),
        value_move(context, NAME, "num_warps", 8, what="more loads in flight per program", reach=0.2, most=0.1,
                   direction=Direction.OCCUPANCY),
        value_move(context, NAME, "BLOCK", 4096, what="fewer loop steps, wider loads", reach=0.2, most=0.12),
        value_move(context, NAME, "BLOCK", 32768, what="a whole row per step whatever its length. Risk: the row may "
                   "not fit the registers", reach=0.2, most=0.06),
        value_move(context, NAME, "num_warps", 16, what="still more loads in flight", reach=0.1, most=0.02,
                   direction=Direction.OCCUPANCY),
        value_move(context, NAME, "BLOCK", 2048, what="fewer loop steps", reach=0.2, most=0.08),
        table_move(context, NAME, "BLOCK", reach=0.1, most=0.05),
    ]
