"""Sums distances from the mean of the first columns and their squares in one loop: near the mean nothing cancels."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def _layer_norm(x, weight, bias, out, x_stride, out_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    first = tl.load(x + row * x_stride + lanes, mask=lanes < cols, other=0.0).to(tl.float32)
    anchor = tl.sum(first, 0) / tl.minimum(cols, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
        apart = tl.where(mask, values - anchor, 0.0)
        sums += apart
        squares += apart * apart
    step = tl.sum(sums, 0) / cols
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols - step * step + eps)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
        gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
        shifts = tl.load(bias + offsets, mask=mask, other=0.0).to(tl.float32)
        result = (values - anchor - step) * scale * gains + shifts
        tl.store(out + row * out_stride + offsets, result, mask=mask)


def run(x, weight, bias, out, *, eps):
    rows, cols = x.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    _layer_norm[(rows,)](x, weight, bias, out, x.stride(0), out.stride(0), cols, eps, BLOCK=block, num_warps=warps)
