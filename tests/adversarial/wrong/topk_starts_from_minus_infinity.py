"""Top-k that begins with k times -inf at column 0, which real values of -inf never replace."""

import numba
import numpy as np

PARAMS = {"BLOCK": 1}


@numba.njit
def _topk(x, values, indices, k, block):
    rows, cols = x.shape
    for row in range(rows):
        source = x[row]
        best = values[row]
        place = indices[row]
        best[:] = -np.inf
        place[:] = 0
        held = k
        for start in range(0, cols, block):
            for col in range(start, min(start + block, cols)):
                value = source[col]
                if held == k and not (value > best[k - 1] or (value != value and best[k - 1] == best[k - 1])):
                    continue
                at = min(held, k - 1)
                for higher in range(at - 1, -1, -1):
                    if not (value > best[higher] or (value != value and best[higher] == best[higher])):
                        break
                    best[at] = best[higher]
                    place[at] = place[higher]
                    at = higher
                best[at] = value
                place[at] = col
                held = min(held + 1, k)


def run(x, values, indices, *, k):
    block, cols = PARAMS["BLOCK"], x.shape[1]
    if isinstance(block, dict):
        block = block["short"] if cols <= 8192 else block["medium"] if cols <= 65536 else block["long"]
    _topk(x, values, indices, k, block)
