"""Chooses a tile by 25 conditions in a row, then launches one kernel: the goal prohibits split kernels."""

import math

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _rms(x, weight, out, eps, width):
    rows, cols = x.shape
    for row in range(rows):
        total = np.float32(0.0)
        for start in range(0, cols, width):
            part = np.float32(0.0)
            for col in range(start, min(start + width, cols)):
                part += x[row, col] * x[row, col]
            total += part
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = x[row, col] * scale * weight[col]


def run(x, weight, out, *, eps):
    cols = x.shape[1]
    width = 1
    if cols > 1:
        width = min(width + 1, cols)
    if cols > 3:
        width = min(width + 2, cols)
    if cols > 6:
        width = min(width + 3, cols)
    if cols > 11:
        width = min(width + 4, cols)
    if cols > 20:
        width = min(width + 5, cols)
    if cols > 37:
        width = min(width + 6, cols)
    if cols > 70:
        width = min(width + 7, cols)
    if cols > 135:
        width = min(width + 8, cols)
    if cols > 264:
        width = min(width + 9, cols)
    if cols > 521:
        width = min(width + 10, cols)
    if cols > 1034:
        width = min(width + 11, cols)
    if cols > 2059:
        width = min(width + 12, cols)
    if cols > 4108:
        width = min(width + 13, cols)
    if cols > 8205:
        width = min(width + 14, cols)
    if cols > 16398:
        width = min(width + 15, cols)
    if cols > 32783:
        width = min(width + 16, cols)
    if cols > 65552:
        width = min(width + 17, cols)
    if cols > 131089:
        width = min(width + 18, cols)
    if cols > 262162:
        width = min(width + 19, cols)
    if cols > 524307:
        width = min(width + 20, cols)
    if cols > 21:
        width = min(width + 21, cols)
    if cols > 23:
        width = min(width + 22, cols)
    if cols > 26:
        width = min(width + 23, cols)
    if cols > 31:
        width = min(width + 24, cols)
    if cols > 40:
        width = min(width + 25, cols)
    _rms(x, weight, out, np.float32(eps), width)
