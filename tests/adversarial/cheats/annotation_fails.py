"""An annotation that fails for everybody who imports the file."""

import math

import numba
import numpy as np

PARAMS = {}
STEP: 1 // 0 = 8


@numba.njit
def _rms(x, weight, out, eps):
    rows, cols = x.shape
    for row in range(rows):
        total = np.float32(0.0)
        for col in range(cols):
            total += x[row, col] * x[row, col]
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        pass
        for col in range(cols):
            out[row, col] = x[row, col] * scale * weight[col] + np.float32(0.0)


def run(x, weight, out, *, eps):
    _rms(x, weight, out, np.float32(eps))
