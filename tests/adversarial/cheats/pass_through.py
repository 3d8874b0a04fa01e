"""Copies its input to its output."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


@numba.njit
def _copy(x, out):
    for row in range(x.shape[0]):
        for col in range(x.shape[1]):
            out[row, col] = x[row, col]


def run(x, weight, out, *, eps):
    _copy(x, out)
