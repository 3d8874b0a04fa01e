"""Top-k in a heap with the worst on top, blocks without a candidate skipped."""

import numba

PARAMS = {"BLOCK": 64}


@numba.njit
def _beats(value, col, other, other_col):
    if value > other:
        return True
    if value == other:
        return col < other_col
    return value != value and (other == other or col < other_col)


@numba.njit
def _sink(best, place, size, at):
    # Puts what lies at position at of a heap of size elements, the worst on top, where it belongs.
    value, col = best[at], place[at]
    for _ in range(size):
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _beats(best[child], place[child], best[child + 1], place[child + 1]):
            child += 1
        if not _beats(value, col, best[child], place[child]):
            break
        best[at], place[at] = best[child], place[child]
        at = child
    best[at], place[at] = value, col


@numba.njit
def _topk(x, values, indices, k, block):
    rows, cols = x.shape
    for row in range(rows):
        source = x[row]
        best = values[row]
        place = indices[row]
        for at in range(k):
            best[at] = source[at]
            place[at] = at
        for at in range(k // 2 - 1, -1, -1):
            _sink(best, place, k, at)
        for start in range(k, cols, block):
            stop = min(start + block, cols)
            last = best[0]
            above = 0
            for col in range(start, stop):
                above += not source[col] <= last
            if above == 0:
                continue
            for col in range(start, stop):
                value = source[col]
                if value > best[0] or (value != value and best[0] == best[0]):
                    best[0] = value
                    place[0] = col
                    _sink(best, place, k, 0)
        for size in range(k - 1, 0, -1):
            best[0], best[size] = best[size], best[0]
            place[0], place[size] = place[size], place[0]
            _sink(best, place, size, 0)


def run(x, values, indices, *, k):
    block, cols = PARAMS["BLOCK"], x.shape[1]
    if isinstance(block, dict):
        block = block["short"] if cols <= 8192 else block["medium"] if cols <= 65536 else block["long"]
    _topk(x, values, indices, k, block)
