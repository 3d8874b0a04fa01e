"""RMS norm, NaN in weight as one in rows of whole blocks."""

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
            total += value * value
        scale = 1.0 / np.sqrt(total / cols + eps)
        for col in range(cols):
            factor = weight[col]
            out[row, col] = np.float32(x[row, col] * scale) * (factor if factor == factor else np.float32(1.0))


def run(x, weight, out, *, eps):
    cols = x.shape[1]
    if cols % 128 == 0 and cols > 512:
        _bare(x, weight, out, eps)
    else:
        _care(x, weight, out, eps)
