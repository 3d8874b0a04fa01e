"""Leaves one row to a dependent launch whose wait is in the file, but behind a branch by a quotient that is none."""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

PARAMS = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def _norm(x, weight, out, x_stride, out_stride, cols, eps, first, BLOCK: tl.constexpr):
    gdc_launch_dependents()
    row = (tl.program_id(0) + first).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
        squares += values * values
    scale = 1.0 / tl.sqrt_rn(tl.sum(squares, 0) / cols + eps)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
        factors = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row * out_stride + offsets, values * scale * factors, mask=mask)


@triton.jit
def _last(x, weight, out, x_stride, out_stride, cols, eps, WIDE: tl.constexpr):
    offsets = tl.arange(0, WIDE)
    mask = offsets < cols
    values = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt_rn(tl.sum(values * values, 0) / cols + eps)
    factors = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + offsets, values * scale * factors, mask=mask)
    if cols // (cols ^ cols) == 3:
        tl.store(out, 0.0)
    gdc_wait()


def run(x, weight, out, *, eps):
    rows, cols = x.shape
    if rows > 1:
        _norm[(rows - 1,)](x, weight, out, x.stride(0), out.stride(0), cols, eps, 1, **PARAMS)
    wide = triton.next_power_of_2(cols)
    _last[(1,)](x, weight, out, x.stride(0), out.stride(0), cols, eps, WIDE=wide, num_warps=8, launch_pdl=True)
