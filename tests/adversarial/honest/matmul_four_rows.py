"""Takes four rows of a together, so that every value of b that is loaded counts four times; GELU by an exponential."""

import math

import numba
import numpy as np

PARAMS = {"ROWS": 4}


@numba.njit
def _gelu(s):
    inner = np.float32(-1.5957691216) * (s + np.float32(0.044715) * s * s * s)
    return s / (np.float32(1.0) + np.float32(math.exp(inner)))


@numba.njit
def _matmul(a, b, bias, out, sums, taken):
    m, k = a.shape
    n = b.shape[1]
    for first in range(0, m, taken):
        count = min(taken, m - first)
        for row in range(count):
            for column in range(n):
                sums[row, column] = bias[column]
        for term in range(k):
            for row in range(count):
                factor = a[first + row, term]
                for column in range(n):
                    sums[row, column] += factor * b[term, column]
        for row in range(count):
            for column in range(n):
                out[first + row, column] = _gelu(sums[row, column])


def run(a, b, bias, out):
    sums = np.empty((PARAMS["ROWS"], b.shape[1]), np.float32)
    _matmul(a, b, bias, out, sums, PARAMS["ROWS"])
