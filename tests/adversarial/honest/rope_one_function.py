"""rope with one kernel function for queries and keys, halves side by side, heads innermost but one."""

import numba

PARAMS = {}


@numba.njit
def _turn(x, cos, sin, out):
    batch, seq, heads, dim = x.shape
    half = dim // 2
    for item in range(batch):
        for position in range(seq):
            for head in range(heads):
                for pair in range(half):
                    first, second = x[item, position, head, pair], x[item, position, head, half + pair]
                    c, s = cos[position, pair], sin[position, pair]
                    out[item, position, head, pair] = first * c - second * s
                    out[item, position, head, half + pair] = second * c + first * s


def run(q, k, cos, sin, q_out, k_out):
    _turn(q, cos, sin, q_out)
    _turn(k, cos, sin, k_out)
