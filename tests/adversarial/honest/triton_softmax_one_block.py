"""Softmax with one block per row, sized by the next power of two."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def _softmax(x, out, x_stride, out_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < cols
    values = tl.load(x + row * x_stride + lanes, mask=mask, other=float("-inf")).to(tl.float32)
    shares = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * out_stride + lanes, shares / tl.sum(shares, 0), mask=mask)


def run(x, out):
    rows, cols = x.shape
    _softmax[(rows,)](x, out, x.stride(0), out.stride(0), cols, BLOCK=triton.next_power_of_2(cols), num_warps=16)
