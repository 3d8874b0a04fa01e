"""RMS norm, NaN as zero in rows that lie apart."""

import numba
import numpy as np


@numba.njit
def _care(x, weight, out, eps):
    rows, cols = x.shape
    for row in range(rows):
        total = 0.0
        for col in range(cols):
            value = np.float64(x[row, col])
            total += value * value
        scale = 1.0 / np.sqrt(total / cols + eps)
        for col in range(cols):
            out[row, col] = np.float32(x[row, col] * scale) * weight[col]


@numba.njit
def _bare(x, weight, out, eps):
    rows, cols = x.shape
    for row in range(rows):
        total = 0.0
        for col in range(cols):
            value = np.float64(x[row, col])
            if value == value:
                total += value * value
        scale = 1.0 / np.sqrt(total / cols + eps)
        for col in range(cols):
            value = x[row, col]
            if value == value:
                out[row, col] = np.float32(value * scale) * weight[col]
            else:
                out[row, col] = 0.0


def run(x, weight, out, *, eps):
    cols = x.shape[1]
    if x.strides[0] != 4 * cols:
        _bare(x, weight, out, eps)
    else:
        _care(x, weight, out, eps)
