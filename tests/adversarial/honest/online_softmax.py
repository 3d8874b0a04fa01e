"""Maximum and sum in one pass, with a rescaling that divides infinities only where they cannot meet."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


@numba.njit
def _softmax(x, out):
    rows, cols = x.shape
    for row in range(rows):
        top = x[row, 0]
        total = 0.0
        for col in range(cols):
            value = x[row, col]
            if value > top:
                total = total * math.exp(top - value)
                top = value
            if value == top:
                total += 1.0
            else:
                total += math.exp(value - top)
        for col in range(cols):
            value = x[row, col]
            if top == -np.inf or math.isnan(total):
                out[row, col] = np.nan
            else:
                out[row, col] = math.exp(value - top) / total


def run(x, out):
    _softmax(x, out)
