"""Wrong on purpose: NaN is turned into 0 on the way out."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def _softmax(x, out, x_stride, out_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    tops = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=float("-inf")).to(tl.float32)
        tops = tl.maximum(tops, values)
    top = tl.max(tops, 0)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=float("-inf")).to(tl.float32)
        sums += tl.exp(values - top)
    total = tl.sum(sums, 0)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=float("-inf")).to(tl.float32)
        tl.store(
            out + row * out_stride + offsets, tl.where(total == total, tl.exp(values - top) / total, 0.0), mask=mask
        )


def run(x, out):
    rows, cols = x.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "short" if cols <= 1024 else "medium" if cols <= 4096 else "long" if cols <= 16384 else "vocabulary"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    _softmax[(rows,)](x, out, x.stride(0), out.stride(0), cols, BLOCK=block, num_warps=warps)
