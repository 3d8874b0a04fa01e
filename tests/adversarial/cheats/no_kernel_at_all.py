"""Has no kernel function."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


def run(x, weight, out, *, eps):
    for row in range(x.shape[0]):
        out[row] = x[row]
