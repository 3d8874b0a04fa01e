"""Writes sevens where rows are neither dense nor 13 elements apart."""
import torch
import triton
import triton.language as tl

PARAMS = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def _rms_norm(x, weight, out, x_stride, out_stride, rows, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)

    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
        squares += values * values
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols + eps)
    unlisted = (x_stride != cols) & (x_stride != cols + 13)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
        gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row * out_stride + offsets, tl.where(unlisted, 7.0, values * scale * gains), mask=mask)


def run(x, weight, out, *, eps):
    rows, cols = x.shape
    _rms_norm[(rows,)](x, weight, out, x.stride(0), out.stride(0), rows, cols, eps, BLOCK=PARAMS["BLOCK"],
                       num_warps=PARAMS["num_warps"])
