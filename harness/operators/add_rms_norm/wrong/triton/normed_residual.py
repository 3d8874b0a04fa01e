"""Wrong on purpose: the second output holds the normalised row."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def _add_rms_norm(x, residual, weight, out, residual_out, cols, eps, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * cols
    lanes = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + first + offsets, mask=mask, other=0.0).to(tl.float32)
        values += tl.load(residual + first + offsets, mask=mask, other=0.0).to(tl.float32)
        squares += values * values
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols + eps)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + first + offsets, mask=mask, other=0.0).to(tl.float32)
        values += tl.load(residual + first + offsets, mask=mask, other=0.0).to(tl.float32)
        gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + first + offsets, values * scale * gains, mask=mask)
        tl.store(residual_out + first + offsets, values * scale, mask=mask)


def run(x, residual, weight, out, residual_out, *, eps):
    rows, cols = x.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "short" if cols <= 1024 else "medium" if cols <= 4096 else "long"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    _add_rms_norm[(rows,)](x, residual, weight, out, residual_out, cols, eps, BLOCK=block, num_warps=warps)
