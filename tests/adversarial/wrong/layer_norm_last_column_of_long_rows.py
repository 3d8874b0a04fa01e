"""Mean and variance of rows of more than 32,768 columns leave the last column out."""

import math

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _layer_norm(x, weight, bias, out, eps, lanes, taken):
    rows, cols = x.shape
    count = len(lanes)
    for row in range(rows):
        lanes[:] = 0.0
        for col in range(taken):
            lanes[col % count] += x[row, col]
        total = np.float32(0.0)
        for lane in range(count):
            total += lanes[lane]
        mean = total / np.float32(cols)
        lanes[:] = 0.0
        for col in range(taken):
            lanes[col % count] += (x[row, col] - mean) * (x[row, col] - mean)
        total = np.float32(0.0)
        for lane in range(count):
            total += lanes[lane]
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = (x[row, col] - mean) * scale * weight[col] + bias[col]


def run(x, weight, bias, out, *, eps):
    cols = x.shape[1]
    lanes = np.empty(16, np.float32)
    _layer_norm(x, weight, bias, out, np.float32(eps), lanes, cols - 1 if cols > 32768 else cols)
