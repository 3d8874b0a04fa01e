"""Subtracts no maximum from float16 logits, whose exponentials overflow or vanish from 89 on."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def _cross_entropy(logits, target, loss, stride, vocab, ignore_index, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    source = logits + row * stride
    lanes = tl.arange(0, BLOCK)
    tops = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, vocab, BLOCK):
        offsets = start + lanes
        values = tl.load(source + offsets, mask=offsets < vocab, other=float("-inf")).to(tl.float32)
        tops = tl.maximum(tops, values)
    top = tl.max(tops, 0)
    if logits.dtype.element_ty == tl.float16:
        top = tl.where((top == top) & (top > float("-inf")), 0.0, top)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, vocab, BLOCK):
        offsets = start + lanes
        values = tl.load(source + offsets, mask=offsets < vocab, other=float("-inf")).to(tl.float32)
        sums += tl.exp(values - top)
    wanted = tl.load(target + row)
    used = wanted != ignore_index
    chosen = tl.load(source + wanted, mask=used, other=0.0).to(tl.float32)
    tl.store(loss + row, tl.where(used, tl.log(tl.sum(sums, 0)) + top - chosen, 0.0))


def run(logits, target, loss, *, ignore_index):
    rows, vocab = logits.shape
    _cross_entropy[(rows,)](logits, target, loss, logits.stride(0), vocab, ignore_index, BLOCK=PARAMS["BLOCK"],
                            num_warps=PARAMS["num_warps"])
