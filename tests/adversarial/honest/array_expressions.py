"""Uses whole-row expressions in compiled code."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


@numba.njit
def _rms_norm(x, weight, out, eps):
    for row in range(x.shape[0]):
        line = x[row].astype(np.float64)
        total = np.sum(line * line)
        scale = 1.0 / math.sqrt(total / x.shape[1] + eps)
        out[row] = (x[row] * scale * weight).astype(np.float32)


def run(x, weight, out, *, eps):
    _rms_norm(x, weight, out, np.float32(eps))
