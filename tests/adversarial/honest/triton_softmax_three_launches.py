"""Finds maximum, sum and result in launches of their own, with scratch that it fills first."""

import torch
import triton
import triton.language as tl

PARAMS = {"BLOCK": 512, "num_warps": 4}


@triton.jit
def _tops(x, tops, x_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=float("-inf")).to(tl.float32)
    tl.atomic_max(tops + row, tl.max(tl.where(values == values, values, float("-inf")), 0))


@triton.jit
def _sums(x, tops, sums, x_stride, cols, splits, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    split = tl.program_id(1)
    offsets = split * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=float("-inf")).to(tl.float32)
    tl.store(sums + row * splits + split, tl.sum(tl.exp(values - tl.load(tops + row)), 0))


@triton.jit
def _shares(x, tops, sums, out, x_stride, out_stride, cols, splits, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([], tl.float32)
    for split in range(splits):
        total += tl.load(sums + row * splits + split)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < cols
    values = tl.load(x + row * x_stride + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    tl.store(out + row * out_stride + offsets, tl.exp(values - tl.load(tops + row)) / total, mask=mask)


def run(x, out):
    rows, cols = x.shape
    splits = triton.cdiv(cols, PARAMS["BLOCK"])
    tops = torch.empty((rows,), device=x.device, dtype=torch.float32)
    tops.fill_(float("-inf"))
    sums = torch.empty((rows, splits), device=x.device, dtype=torch.float32)
    _tops[(rows, splits)](x, tops, x.stride(0), cols, **PARAMS)
    _sums[(rows, splits)](x, tops, sums, x.stride(0), cols, splits, **PARAMS)
    _shares[(rows, splits)](x, tops, sums, out, x.stride(0), out.stride(0), cols, splits, **PARAMS)
