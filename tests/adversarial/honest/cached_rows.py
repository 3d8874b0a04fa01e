"""Copies each row into a small buffer called cache first; the function is called cache_rows."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


@numba.njit
def cache_rows(x, row, cache):
    for col in range(x.shape[1]):
        cache[col] = x[row, col]


@numba.njit
def _rms_norm(x, weight, out, cache, eps):
    rows, cols = x.shape
    for row in range(rows):
        cache_rows(x, row, cache)
        total = 0.0
        for col in range(cols):
            total += cache[col] * cache[col]
        scale = 1.0 / math.sqrt(total / cols + eps)
        for col in range(cols):
            out[row, col] = cache[col] * scale * weight[col]


def run(x, weight, out, *, eps):
    cache = np.empty(x.shape[1], np.float32)
    _rms_norm(x, weight, out, cache, eps)
