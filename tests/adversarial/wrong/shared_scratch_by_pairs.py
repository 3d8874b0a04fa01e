"""Right on one thread: two iterations share a line of scratch, at an index that does depend on the row."""
import math

import numba
import numpy as np

PARAMS = {}


@numba.njit(parallel=True)
def _normalise(x, weight, out, eps, part):
    rows, cols = x.shape
    for row in numba.prange(rows):
        line = row % 2
        for j in range(16):
            part[line, j] = 0.0
        for c in range(cols):
            part[line, c % 16] += x[row, c] * x[row, c]
        total = np.float32(0.0)
        for j in range(16):
            total += part[line, j]
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for c in range(cols):
            out[row, c] = x[row, c] * scale * weight[c]


def run(x, weight, out, *, eps):
    _normalise(x, weight, out, np.float32(eps), np.empty((2, 16), np.float32))
