"""Wrong on purpose: one element past the end of the sum is written."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 8}


@numba.njit
def _add_rms_norm(x, residual, weight, out, residual_out, partial, eps, block):
    rows, cols = x.shape
    whole = cols - cols % block
    for row in range(rows):
        for lane in range(block):
            partial[lane] = 0.0
        for start in range(0, whole, block):
            for lane in range(block):
                value = x[row, start + lane] + residual[row, start + lane]
                residual_out[row, start + lane] = value
                partial[lane] += value * value
        total = np.float32(0.0)
        for lane in range(block):
            total += partial[lane]
        for col in range(whole, cols):
            value = x[row, col] + residual[row, col]
            residual_out[row, col] = value
            total += value * value
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = residual_out[row, col] * scale * weight[col]
        residual_out[row, cols] = total


def run(x, residual, weight, out, residual_out, *, eps):
    block = PARAMS["BLOCK"]
    if isinstance(block, dict):
        block = block["short"] if x.shape[1] <= 1024 else block["medium"] if x.shape[1] <= 4096 else block["long"]
    partial = np.empty(block, np.float32)
    _add_rms_norm(x, residual, weight, out, residual_out, partial, np.float32(eps), block)
