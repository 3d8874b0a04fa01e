"""Squares are taken of sums 2^40 times as large in rows of more than 2,100 columns, where huge ones overflow."""

import math

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _add_rms_norm(x, residual, weight, out, residual_out, eps, lanes, lift):
    rows, cols = x.shape
    count = len(lanes)
    for row in range(rows):
        lanes[:] = 0.0
        for col in range(cols):
            value = x[row, col] + residual[row, col]
            residual_out[row, col] = value
            lanes[col % count] += (value * lift) * (value * lift)
        total = np.float32(0.0)
        for lane in range(count):
            total += lanes[lane]
        scale = lift / math.sqrt(total / np.float32(cols) + eps * lift * lift)
        for col in range(cols):
            out[row, col] = residual_out[row, col] * scale * weight[col]


def run(x, residual, weight, out, residual_out, *, eps):
    lanes = np.empty(16, np.float32)
    _add_rms_norm(x, residual, weight, out, residual_out, np.float32(eps), lanes, np.float32(2.0**40 if x.shape[1] > 2100 else 1.0))
