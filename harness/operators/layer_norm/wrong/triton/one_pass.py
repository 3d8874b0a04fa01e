"""Wrong on purpose: the variance is the mean square less the squared mean, which cancels where rows lie far from 0."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 1024, "num_warps": 8}


@triton.jit
def _layer_norm(x, weight, bias, out, x_stride, out_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        sums += tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
    mean = tl.sum(sums, 0) / cols
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
        squares += values * values
    scale = 1.0 / tl.sqrt(tl.maximum(tl.sum(squares, 0) / cols - mean * mean, 0.0) + eps)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
        gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
        shifts = tl.load(bias + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row * out_stride + offsets, (values - mean) * scale * gains + shifts, mask=mask)


def run(x, weight, bias, out, *, eps):
    rows, cols = x.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "short" if cols <= 1024 else "medium" if cols <= 4096 else "long"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    _layer_norm[(rows,)](x, weight, bias, out, x.stride(0), out.stride(0), cols, eps, BLOCK=block, num_warps=warps)
