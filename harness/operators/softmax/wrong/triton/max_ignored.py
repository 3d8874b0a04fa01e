"""Wrong on purpose: the maximum is not subtracted."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def _softmax(x, out, x_stride, out_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=float("-inf")).to(tl.float32)
        sums += tl.exp(values)
    total = tl.sum(sums, 0)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=float("-inf")).to(tl.float32)
        tl.store(out + row * out_stride + offsets, tl.exp(values) / total, mask=mask)


def run(x, out):
    rows, cols = x.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "short" if cols <= 1024 else "medium" if cols <= 4096 else "long" if cols <= 16384 else "vocabulary"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    _softmax[(rows,)](x, out, x.stride(0), out.stride(0), cols, BLOCK=block, num_warps=warps)
