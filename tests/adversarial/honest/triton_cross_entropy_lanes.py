"""Cross entropy in one read with a running maximum and sum per lane."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 2048, "num_warps": 8}


@triton.jit
def _cross_entropy(logits, target, loss, logits_stride, vocab, ignore_index, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    source = logits + row * logits_stride
    wanted = tl.load(target + row)
    used = wanted != ignore_index
    chosen = tl.load(source + wanted, mask=used, other=0.0).to(tl.float32)
    steps = tl.arange(0, 4)[:, None] * BLOCK
    lanes = tl.arange(0, BLOCK)[None, :]
    tops = tl.full([BLOCK], float("-inf"), tl.float32)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, vocab, 4 * BLOCK):
        offsets = start + steps + lanes
        values = tl.load(source + offsets, mask=offsets < vocab, other=float("-inf")).to(tl.float32)
        highest = tl.maximum(tops, tl.max(values, 0))
        safe = tl.where(highest == float("-inf"), 0.0, highest)
        powers = tl.exp2((values - safe[None, :]) * 1.4426950408889634)
        sums = sums * tl.exp2((tops - safe) * 1.4426950408889634) + tl.sum(powers, 0)
        tops = highest
    top = tl.max(tops, 0)
    total = tl.sum(sums * tl.exp2((tops - top) * 1.4426950408889634), 0)
    tl.store(loss + row, tl.where(used, tl.log2(total) * 0.6931471805599453 + top - chosen, 0.0))


def run(logits, target, loss, *, ignore_index):
    rows, vocab = logits.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "short" if vocab <= 8192 else "medium" if vocab <= 65536 else "long"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    _cross_entropy[(rows,)](
        logits, target, loss, logits.stride(0), vocab, ignore_index, BLOCK=block, num_warps=warps
    )
