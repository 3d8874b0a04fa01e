"""Waits on the device for a flag that nobody sets."""

import torch
import triton
import triton.language as tl

PARAMS = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def _rms_norm(x, weight, out, flag, x_stride, out_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    while tl.atomic_add(flag, 0) == 0:
        pass
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, 0) / cols + eps)
    gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * out_stride + offsets, values * scale * gains, mask=mask)


def run(x, weight, out, *, eps):
    rows, cols = x.shape
    flag = torch.zeros((1,), device=x.device, dtype=torch.int32)
    _rms_norm[(rows,)](x, weight, out, flag, x.stride(0), out.stride(0), cols, eps, **PARAMS)
