"""Rows in parallel with scratch of their own: a line of a shared array for each row, and an array made in the loop."""
import math

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _add_up(part):
    total = np.float32(0.0)
    for j in range(part.shape[0]):
        total += part[j]
        part[j] = 0.0
    return total


@numba.njit(parallel=True)
def _normalise(x, weight, out, eps, lines):
    rows, cols = x.shape
    for row in numba.prange(rows):
        own, even = lines[row], np.zeros(4, np.float32)
        own[:] = 0.0
        for c in range(cols):
            if c % 2 == 0:
                even[c // 2 % 4] += x[row, c] * x[row, c]
            else:
                own[c % 16] += x[row, c] * x[row, c]
        total = _add_up(own) + _add_up(even)
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for c in range(cols):
            out[row, c] = x[row, c] * scale * weight[c]


def run(x, weight, out, *, eps):
    _normalise(x, weight, out, np.float32(eps), np.empty((x.shape[0], 16), np.float32))
