"""RMS norm, a few long rows by threads that share the columns: their sums meet in two places."""

import numba
import numpy as np

PARTS = 16


@numba.njit(parallel=True)
def _shared_out(x, weight, out, eps, sums):
    rows, cols = x.shape
    for row in range(rows):
        sums[:] = 0.0
        for part in numba.prange(PARTS):
            low = part * cols // PARTS
            high = (part + 1) * cols // PARTS
            for col in range(low, high):
                value = np.float64(x[row, col])
                sums[part % 2] += value * value
        scale = 1.0 / np.sqrt((sums[0] + sums[1]) / cols + eps)
        for part in numba.prange(PARTS):
            low = part * cols // PARTS
            high = (part + 1) * cols // PARTS
            for col in range(low, high):
                out[row, col] = np.float32(x[row, col] * scale) * weight[col]


@numba.njit(parallel=True)
def _by_rows(x, weight, out, eps):
    rows, cols = x.shape
    for row in numba.prange(rows):
        total = 0.0
        for col in range(cols):
            value = np.float64(x[row, col])
            total += value * value
        scale = 1.0 / np.sqrt(total / cols + eps)
        for col in range(cols):
            out[row, col] = np.float32(x[row, col] * scale) * weight[col]


def run(x, weight, out, *, eps):
    if x.shape[0] < 16 and x.shape[1] > 4096:
        _shared_out(x, weight, out, eps, np.empty(2))
    else:
        _by_rows(x, weight, out, eps)
