"""Holds a short row in one block and loops over the blocks of a long one."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 2048, "num_warps": 4}


@triton.jit
def _whole(x, weight, out, x_stride, out_stride, cols, eps, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, WIDTH)
    mask = lanes < cols
    values = tl.load(x + row * x_stride + lanes, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, 0) / cols + eps)
    gains = tl.load(weight + lanes, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * out_stride + lanes, values * scale * gains, mask=mask)


@triton.jit
def _blocks(x, weight, out, x_stride, out_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, cols, BLOCK, num_stages=2):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
        squares += values * values
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols + eps)
    for start in tl.range(0, cols, BLOCK, num_stages=2):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
        gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row * out_stride + offsets, values * scale * gains, mask=mask)


def run(x, weight, out, *, eps):
    rows, cols = x.shape
    if cols <= PARAMS["BLOCK"]:
        _whole[(rows,)](x, weight, out, x.stride(0), out.stride(0), cols, eps, WIDTH=triton.next_power_of_2(cols),
                        num_warps=PARAMS["num_warps"])
    else:
        _blocks[(rows,)](x, weight, out, x.stride(0), out.stride(0), cols, eps, **PARAMS)
