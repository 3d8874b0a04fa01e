"""Takes the maximum over the whole array, so that small rows vanish."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


@numba.njit
def _softmax(x, out):
    rows, cols = x.shape
    total = 0.0
    for row in range(rows):
        for col in range(cols):
            total += math.exp(x[row, col])
    for row in range(rows):
        for col in range(cols):
            out[row, col] = math.exp(x[row, col]) / total


def run(x, out):
    _softmax(x, out)
