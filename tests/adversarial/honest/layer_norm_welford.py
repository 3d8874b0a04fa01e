"""One sweep with a running mean (Welford), which loses nothing where a row lies far from 0."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 8}


@numba.njit
def _layer_norm(x, weight, bias, out, eps):
    rows, cols = x.shape
    for row in range(rows):
        mean = np.float32(0.0)
        spread = np.float32(0.0)
        for col in range(cols):
            apart = x[row, col] - mean
            mean += apart / np.float32(col + 1)
            spread += apart * (x[row, col] - mean)
        scale = np.float32(1.0) / math.sqrt(spread / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = (x[row, col] - mean) * scale * weight[col] + bias[col]


def run(x, weight, bias, out, *, eps):
    _layer_norm(x, weight, bias, out, np.float32(eps))
