"""Leaves the last column out of the sum of rows of more than 32,768 columns."""

import math

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _softmax(x, out, summed):
    rows, cols = x.shape
    for row in range(rows):
        top = np.float32(-np.inf)
        for col in range(cols):
            value = x[row, col]
            if value > top or value != value:
                top = value
        total = np.float32(0.0)
        for col in range(summed):
            total += np.float32(math.exp(x[row, col] - top))
        for col in range(cols):
            out[row, col] = np.float32(math.exp(x[row, col] - top)) / total


def run(x, out):
    cols = x.shape[1]
    _softmax(x, out, cols - 1 if cols > 32768 else cols)
