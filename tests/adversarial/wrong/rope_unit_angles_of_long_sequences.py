"""Divides by cos^2 + sin^2 in sequences of more than 128 positions, as if both were of angles always."""

import numba

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
                        size = c * c + s * s
                        c /= size
                        s /= size
                    out[item, place, head, col] = left * c - right * s
                    out[item, place, head, half + col] = right * c + left * s


def run(q, k, cos, sin, q_out, k_out):
    long = q.shape[1] > 128
    _turn(q, cos, sin, q_out, long)
    _turn(k, cos, sin, k_out, long)
