"""Lets several programs read, add and write one sum without an atomic; one after the other, as the interpreter runs them, they are right."""

import torch
import triton
import triton.language as tl

PARAMS = {"BLOCK": 256, "num_warps": 4}


@triton.jit
def _squares(x, totals, x_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
    part = tl.sum(values * values, 0)
    tl.store(totals + row, tl.load(totals + row) + part)


@triton.jit
def _apply(x, totals, weight, out, x_stride, out_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    scale = 1.0 / tl.sqrt(tl.load(totals + row) / cols + eps)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < cols
    values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
    gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * out_stride + offsets, values * scale * gains, mask=mask)


def run(x, weight, out, *, eps):
    rows, cols = x.shape
    grid = (rows, triton.cdiv(cols, PARAMS["BLOCK"]))
    totals = torch.zeros((rows,), device=x.device, dtype=torch.float32)
    _squares[grid](x, totals, x.stride(0), cols, **PARAMS)
    _apply[grid](x, totals, weight, out, x.stride(0), out.stride(0), cols, eps, **PARAMS)
