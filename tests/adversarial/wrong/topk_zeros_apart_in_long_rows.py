"""Puts 0 before -0 in rows of more than 3,000 columns, as keys made of bits do."""

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _before(one, other, apart):
    if apart and one == 0 and other == 0:
        return np.copysign(np.float32(1.0), one) > np.copysign(np.float32(1.0), other)
    return one > other or (one != one and other == other)


@numba.njit
def _topk(x, values, indices, k, apart):
    rows, cols = x.shape
    for row in range(rows):
        best, place = values[row], indices[row]
        held = 0
        for col in range(cols):
            value = x[row, col]
            if held == k and not _before(value, best[k - 1], apart):
                continue
            at = held if held < k else k - 1
            while at > 0 and _before(value, best[at - 1], apart):
                best[at] = best[at - 1]
                place[at] = place[at - 1]
                at -= 1
            best[at] = value
            place[at] = col
            held = min(held + 1, k)


def run(x, values, indices, *, k):
    _topk(x, values, indices, k, x.shape[1] > 3000)
