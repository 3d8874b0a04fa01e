"""Looks through rows of more than 3,000 columns from the end, so that of equal values the last ones come first."""

import numba

PARAMS = {}


@numba.njit
def _before(one, other):
    return one > other or (one != one and other == other)


@numba.njit
def _topk(x, values, indices, k, backwards):
    rows, cols = x.shape
    for row in range(rows):
        best, place = values[row], indices[row]
        held = 0
        for step in range(cols):
            col = cols - 1 - step if backwards else step
            value = x[row, col]
            if held == k and not _before(value, best[k - 1]):
                continue
            at = held if held < k else k - 1
            while at > 0 and _before(value, best[at - 1]):
                best[at] = best[at - 1]
                place[at] = place[at - 1]
                at -= 1
            best[at] = value
            place[at] = col
            held = min(held + 1, k)


def run(x, values, indices, *, k):
    _topk(x, values, indices, k, x.shape[1] > 3000)
