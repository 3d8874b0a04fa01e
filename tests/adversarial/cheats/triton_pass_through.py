"""Stores its input unchanged."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def _copy(x, out, x_stride, out_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, cols, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < cols
        tl.store(out + row * out_stride + offsets, tl.load(x + row * x_stride + offsets, mask=mask), mask=mask)


def run(x, weight, out, *, eps):
    _copy[(x.shape[0],)](x, out, x.stride(0), out.stride(0), x.shape[1], **PARAMS)
