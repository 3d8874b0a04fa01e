"""Wrong on purpose: of two equal values chance decides."""

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
        held = 0
        for start in range(0, cols, block):
            for col in range(start, min(start + block, cols)):
                value = source[col]
                if held == k and not (value > best[k - 1] or (value != value and best[k - 1] == best[k - 1])):
                    continue
                at = held if held < k else k - 1
                while at > 0 and (value > best[at - 1] or (value == best[at - 1] and np.random.random() < 0.5)
                                  or (value != value and best[at - 1] == best[at - 1])):
                    best[at] = best[at - 1]
                    place[at] = place[at - 1]
                    at -= 1
                best[at] = value
                place[at] = col
                held = min(held + 1, k)


def run(x, values, indices, *, k):
    block, cols = PARAMS["BLOCK"], x.shape[1]
    if isinstance(block, dict):
        block = block["short"] if cols <= 8192 else block["medium"] if cols <= 65536 else block["long"]
    _topk(x, values, indices, k, block)
