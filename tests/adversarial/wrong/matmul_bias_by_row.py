"""Adds the bias of the row's number instead of the column's."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 256}


@numba.njit
def _matmul(a, b, bias, out, sums, block):
    m, k = a.shape
    n = b.shape[1]
    for row in range(m):
        for start in range(0, n, block):
            count = min(block, n - start)
            for column in range(count):
                sums[column] = bias[row % n]
            for term in range(k):
                factor = a[row, term]
                for column in range(count):
                    sums[column] += factor * b[term, start + column]
            for column in range(count):
                s = sums[column]
                inner = np.float32(0.7978845608) * (s + np.float32(0.044715) * s * s * s)
                out[row, start + column] = np.float32(0.5) * s * (np.float32(1.0) + math.tanh(inner))


def run(a, b, bias, out):
    block = PARAMS["BLOCK"]
    if isinstance(block, dict):
        block = block["few"] if a.shape[0] <= 64 else block["some"] if a.shape[0] <= 1024 else block["many"]
    sums = np.empty(block, np.float32)
    _matmul(a, b, bias, out, sums, block)
