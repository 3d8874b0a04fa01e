"""Adds the squares with Kahan's compensation, row after row, and never reads a sum back."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 8}


@numba.njit
def _add_rms_norm(x, residual, weight, out, residual_out, eps):
    rows, cols = x.shape
    for row in range(rows):
        total = np.float32(0.0)
        lost = np.float32(0.0)
        for col in range(cols):
            value = x[row, col] + residual[row, col]
            term = value * value - lost
            grown = total + term
            lost = (grown - total) - term
            total = grown
        if not math.isfinite(total):
            total = np.float32(0.0)
            for col in range(cols):
                value = x[row, col] + residual[row, col]
                total += value * value
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            value = x[row, col] + residual[row, col]
            residual_out[row, col] = value
            out[row, col] = value * scale * weight[col]


def run(x, residual, weight, out, residual_out, *, eps):
    _add_rms_norm(x, residual, weight, out, residual_out, np.float32(eps))
