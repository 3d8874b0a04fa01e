"""Brings rows into padded scratch first and reads them back through tensor descriptors."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

PARAMS = {"BLOCK": 256, "num_warps": 4}


@triton.jit
def _gather(x, padded, x_stride, width, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, width, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
        tl.store(padded + row * width + offsets, values)


@triton.jit
def _rms_norm(padded, weight, out, out_stride, width, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    squares = tl.zeros([1, BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        values = padded.load([row, start])
        squares += values * values
    scale = 1.0 / tl.sqrt(tl.sum(squares) / cols + eps)
    for start in range(0, width, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < cols
        values = tl.reshape(padded.load([row, start]), [BLOCK])
        gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row.to(tl.int64) * out_stride + offsets, values * scale * gains, mask=mask)


def run(x, weight, out, *, eps):
    rows, cols = x.shape
    block = PARAMS["BLOCK"]
    width = triton.cdiv(cols, block) * block
    padded = torch.empty((rows, width), device=x.device, dtype=torch.float32)
    _gather[(rows,)](x, padded, x.stride(0), width, cols, **PARAMS)
    tiles = TensorDescriptor(padded, [rows, width], [width, 1], [1, block])
    _rms_norm[(rows,)](tiles, weight, out, out.stride(0), width, cols, eps, **PARAMS)
