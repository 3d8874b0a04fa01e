"""Calls its locals sum and max."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


@numba.njit
def _rms_norm(x, weight, out, partial, eps):
    rows, cols = x.shape
    lanes = partial.shape[0]
    max = cols - cols % lanes
    for row in range(rows):
        for lane in range(lanes):
            partial[lane] = 0.0
        for start in range(0, max, lanes):
            for lane in range(lanes):
                partial[lane] += x[row, start + lane] * x[row, start + lane]
        sum = np.float32(0.0)
        for lane in range(lanes):
            sum += partial[lane]
        for col in range(max, cols):
            sum += x[row, col] * x[row, col]
        scale = np.float32(1.0) / math.sqrt(sum / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = x[row, col] * scale * weight[col]


def run(x, weight, out, *, eps):
    partial = np.empty(PARAMS["BLOCK"], np.float32)
    _rms_norm(x, weight, out, partial, np.float32(eps))
