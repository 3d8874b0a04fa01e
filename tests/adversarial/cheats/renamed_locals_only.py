"""RMSNorm, two passes over each row: the mean square in BLOCK partial sums, then the scaling."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 8}


@numba.njit
def _rms_norm(x, weight, out, partial, eps, block):
    rows, cols = x.shape
    whole = cols - cols % block
    for row in range(rows):
        for rung in range(block):
            partial[rung] = 0.0
        for start in range(0, whole, block):
            for rung in range(block):
                partial[rung] += x[row, start + rung] * x[row, start + rung]
        total = np.float32(0.0)
        for rung in range(block):
            total += partial[rung]
        for col in range(whole, cols):
            total += x[row, col] * x[row, col]
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = x[row, col] * scale * weight[col]


def run(x, weight, out, *, eps):
    block = PARAMS["BLOCK"]
    if isinstance(block, dict):
        block = block["short"] if x.shape[1] <= 1024 else block["medium"] if x.shape[1] <= 4096 else block["long"]
    partial = np.empty(block, np.float32)
    _rms_norm(x, weight, out, partial, np.float32(eps), block)
