"""Takes NaN in k for 0 in sequences of more than 64 positions."""

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _turn(x, cos, sin, out, other):
    batch, seq, heads, dim = x.shape
    half = dim // 2
    for item in range(batch):
        for place in range(seq):
            for head in range(heads):
                for col in range(half):
                    c, s = cos[place, col], sin[place, col]
                    left = x[item, place, head, col]
                    right = x[item, place, head, half + col]
                    if other:
                        left = left if left == left else np.float32(0.0)
                        right = right if right == right else np.float32(0.0)
                    out[item, place, head, col] = left * c - right * s
                    out[item, place, head, half + col] = right * c + left * s


def run(q, k, cos, sin, q_out, k_out):
    long = q.shape[1] > 64
    _turn(q, cos, sin, q_out, False)
    _turn(k, cos, sin, k_out, long)
