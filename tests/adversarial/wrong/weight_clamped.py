"""Clamps weights to 10,000 and lets those that are no number count as 1."""

import math

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _rms_norm(x, weight, out, eps):
    rows, cols = x.shape
    for row in range(rows):
        total = np.float32(0.0)
        for col in range(cols):
            total += x[row, col] * x[row, col]
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            gain = weight[col]
            if not abs(gain) <= np.float32(np.inf):
                gain = np.float32(1.0)
            out[row, col] = x[row, col] * scale * max(np.float32(-1e4), min(np.float32(1e4), gain))


def run(x, weight, out, *, eps):
    _rms_norm(x, weight, out, np.float32(eps))
