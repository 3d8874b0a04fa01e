"""RMSNorm kernels that are slower by a known amount of honest work: some rows are computed twice.

Nothing else differs: all kernels of a series are the same program, which gets the number of extra rows as an argument.
A repeated row may cost less than a first one, because the caches still hold it; the calibration of a series measures
that cost with amounts large enough to be measured well.
"""

from __future__ import annotations

NUMBA = '''"""RMSNorm that computes its first EXTRA rows twice."""

import math

import numba
import numpy as np

PARAMS = {{"BLOCK": 8, "EXTRA": {extra}}}


@numba.njit
def _rms_norm(x, weight, out, partial, eps, block, extra):
    rows, cols = x.shape
    whole = cols - cols % block
    for number in range(rows + extra):
        row = number % rows
        for lane in range(block):
            partial[lane] = 0.0
        for start in range(0, whole, block):
            for lane in range(block):
                partial[lane] += x[row, start + lane] * x[row, start + lane]
        total = np.float32(0.0)
        for lane in range(block):
            total += partial[lane]
        for col in range(whole, cols):
            total += x[row, col] * x[row, col]
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = x[row, col] * scale * weight[col]


def run(x, weight, out, *, eps):
    partial = np.empty(PARAMS["BLOCK"], np.float32)
    _rms_norm(x, weight, out, partial, np.float32(eps), PARAMS["BLOCK"], PARAMS["EXTRA"])
'''

TRITON = '''"""RMSNorm, one program per row, the first EXTRA rows by two programs that write the same values."""

import triton
import triton.language as tl

PARAMS = {{"BLOCK": 1024, "num_warps": 4, "EXTRA": {extra}}}


@triton.jit
def _rms_norm(x, weight, out, x_stride, out_stride, rows, cols, eps, BLOCK: tl.constexpr):
    row = (tl.program_id(0) % rows).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
        squares += values * values
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols + eps)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
        gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row * out_stride + offsets, values * scale * gains, mask=mask)


def run(x, weight, out, *, eps):
    rows, cols = x.shape
    _rms_norm[(rows + PARAMS["EXTRA"],)](
        x, weight, out, x.stride(0), out.stride(0), rows, cols, eps, BLOCK=PARAMS["BLOCK"],
        num_warps=PARAMS["num_warps"],
    )
'''


def source(place: str, extra: int) -> str:
    """The kernel for ``cpu`` or ``gpu`` that computes ``extra`` rows twice."""
    return {"cpu": NUMBA, "gpu": TRITON}[place].format(extra=extra)
