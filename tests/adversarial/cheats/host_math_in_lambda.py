"""Computes on arrays in a lambda that is called where it stands."""

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _scale(x, squares, weight, out, eps):
    rows, cols = x.shape
    for row in range(rows):
        total = np.float32(0.0)
        for col in range(cols):
            total += squares[row, col]
        scale = np.float32(1.0) / np.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = x[row, col] * scale * weight[col]


def run(x, weight, out, *, eps):
    _scale(x, (lambda a: a * a)(x), weight, out, np.float32(eps))
