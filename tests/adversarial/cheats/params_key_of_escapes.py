"""A PARAMS key with terminal escapes and a bidirectional override."""

import math

import numba
import numpy as np

PARAMS = {"\x1b[31mBLOCK\u202e": 1}


@numba.njit
def _rms(x, weight, out, eps):
    rows, cols = x.shape
    for row in range(rows):
        total = np.float32(0.0)
        for col in range(cols):
            total += x[row, col] * x[row, col]
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = x[row, col] * scale * weight[col]


def run(x, weight, out, *, eps):
    _rms(x, weight, out, np.float32(eps))
