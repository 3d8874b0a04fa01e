"""Lacks a colon."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


@numba.njit
def _rms_norm(x, weight, out, partial, eps)
    out[0, 0] = 0.0


def run(x, weight, out, *, eps):
    partial = np.empty(PARAMS["BLOCK"], np.float32)
    _rms_norm(x, weight, out, partial, np.float32(eps))
