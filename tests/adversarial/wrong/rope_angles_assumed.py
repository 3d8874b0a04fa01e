"""Turns position p by the usual angles p / 10000^(i/half) instead of reading cos and sin."""

import numba
import numpy as np

PARAMS = {"BLOCK": 8}


@numba.njit
def _rope(x, out):
    batch, seq, heads, dim = x.shape
    half = dim // 2
    for item in range(batch):
        for place in range(seq):
            for head in range(heads):
                for col in range(half):
                    angle = place * 10000.0 ** (-col / half)
                    c = np.cos(angle)
                    s = np.sin(angle)
                    left = x[item, place, head, col]
                    right = x[item, place, head, half + col]
                    out[item, place, head, col] = left * c - right * s
                    out[item, place, head, half + col] = right * c + left * s


def run(q, k, cos, sin, q_out, k_out):
    _rope(q, q_out)
    _rope(k, k_out)
