"""A NaN is left out of the mean square of rows of more than 4,352 columns, so that the rest of its row stays finite."""

import math

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _add_rms_norm(x, residual, weight, out, residual_out, eps, lanes, plain):
    rows, cols = x.shape
    count = len(lanes)
    for row in range(rows):
        lanes[:] = 0.0
        for col in range(cols):
            value = x[row, col] + residual[row, col]
            residual_out[row, col] = value
            if plain or value == value:
                lanes[col % count] += value * value
        total = np.float32(0.0)
        for lane in range(count):
            total += lanes[lane]
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = residual_out[row, col] * scale * weight[col]


def run(x, residual, weight, out, residual_out, *, eps):
    lanes = np.empty(16, np.float32)
    _add_rms_norm(x, residual, weight, out, residual_out, np.float32(eps), lanes, x.shape[1] <= 4352)
