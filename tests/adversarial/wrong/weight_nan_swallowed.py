"""Takes a weight that is no number for 1."""

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
            gain = weight[col] if weight[col] == weight[col] else np.float32(1.0)
            out[row, col] = x[row, col] * scale * gain


def run(x, weight, out, *, eps):
    _rms_norm(x, weight, out, np.float32(eps))
