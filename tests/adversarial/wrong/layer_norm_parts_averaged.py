"""Takes the mean of the variances of a row's parts for its variance: the distances of their means are missing."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 128}


@numba.njit
def _layer_norm(x, weight, bias, out, eps, block):
    rows, cols = x.shape
    for row in range(rows):
        total = np.float32(0.0)
        spread = np.float32(0.0)
        for start in range(0, cols, block):
            stop = min(start + block, cols)
            part = np.float32(0.0)
            for col in range(start, stop):
                part += x[row, col]
            total += part
            middle = part / np.float32(stop - start)
            for col in range(start, stop):
                spread += (x[row, col] - middle) * (x[row, col] - middle)
        mean = total / np.float32(cols)
        scale = np.float32(1.0) / math.sqrt(spread / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = (x[row, col] - mean) * scale * weight[col] + bias[col]


def run(x, weight, bias, out, *, eps):
    _layer_norm(x, weight, bias, out, np.float32(eps), PARAMS["BLOCK"])
