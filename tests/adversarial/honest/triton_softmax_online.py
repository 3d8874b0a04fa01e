"""Maximum and sum in one pass with rescaling, in powers of two."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 512, "num_warps": 4}


@triton.jit
def _softmax(x, out, x_stride, out_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    top = tl.full([], float("-inf"), tl.float32)
    total = tl.zeros([], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=float("-inf")).to(tl.float32)
        highest = tl.maximum(top, tl.max(values, 0))
        base = tl.where(highest == float("-inf"), 0.0, highest)
        total = total * tl.exp2((top - base) * 1.4426950408889634)
        total += tl.sum(tl.exp2((values - base) * 1.4426950408889634), 0)
        top = highest
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=float("-inf")).to(tl.float32)
        tl.store(out + row * out_stride + offsets, tl.exp2((values - top) * 1.4426950408889634) / total, mask=mask)


def run(x, out):
    rows, cols = x.shape
    _softmax[(rows,)](x, out, x.stride(0), out.stride(0), cols, **PARAMS)
