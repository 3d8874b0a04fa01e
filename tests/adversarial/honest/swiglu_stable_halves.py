"""swiglu by the sign of the gate: the exponential is always of a number that is not positive."""

import math

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _rows(gate, up, out):
    rows, cols = gate.shape
    one = np.float32(1.0)
    for row in range(rows):
        for col in range(cols):
            value = gate[row, col]
            if value >= 0:
                share = one / (one + np.float32(math.exp(-value)))
            else:
                power = np.float32(math.exp(value))
                share = power / (one + power)
            out[row, col] = (value * share) * up[row, col]


def run(gate, up, out):
    _rows(gate, up, out)
