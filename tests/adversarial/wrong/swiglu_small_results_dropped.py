"""Gives 0 for gates below -20, whose results are tiny beside all others of a row."""

import numba
import numpy as np

PARAMS = {"BLOCK": 64}


@numba.njit
def _swiglu(gate, up, out):
    rows, cols = gate.shape
    for row in range(rows):
        for col in range(cols):
            value = np.float32(0.0)
            if not gate[row, col] < np.float32(-20.0):
                value = gate[row, col] / (np.float32(1.0) + np.exp(-gate[row, col])) * up[row, col]
            out[row, col] = value


def run(gate, up, out):
    _swiglu(gate, up, out)
