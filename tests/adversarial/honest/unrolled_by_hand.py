"""Writes out four steps of a loop and finishes with a plain one."""

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
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        quarter = cols // 4 * 4  # // is an integer division, not a comment
        for col in range(0, quarter, 4):
            out[row, col] = x[row, col] * scale * weight[col]
            out[row, col + 1] = x[row, col + 1] * scale * weight[col + 1]
            out[row, col + 2] = x[row, col + 2] * scale * weight[col + 2]
            out[row, col + 3] = x[row, col + 3] * scale * weight[col + 3]
        for col in range(quarter, cols):
            out[row, col] = x[row, col] * scale * weight[col]


def run(x, weight, out, *, eps):
    partial = np.empty(PARAMS["BLOCK"], np.float32)
    _rms_norm(x, weight, out, partial, np.float32(eps))
