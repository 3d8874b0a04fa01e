"""Cross entropy in one read: maximum and sum block by block, the sum rescaled in between."""

import numba
import numpy as np

PARAMS = {"BLOCK": 1024}


@numba.njit
def _exp(x):
    # Range reduction by ln 2 in two parts, then a degree-6 polynomial; below -87.3 the result is subnormal.
    power = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    power = max(power, np.float32(-126.0))
    rest = x - power * np.float32(0.693359375) + power * np.float32(2.12194440e-4)
    value = np.float32(1.9875691500e-4)
    value = value * rest + np.float32(1.3981999507e-3)
    value = value * rest + np.float32(8.3334519073e-3)
    value = value * rest + np.float32(4.1665795894e-2)
    value = value * rest + np.float32(1.6666665459e-1)
    value = value * rest + np.float32(5.0000001201e-1)
    value = value * rest * rest + rest + np.float32(1.0)
    scaled = value * np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)
    return np.float32(0.0) if x < np.float32(-87.3) else scaled


@numba.njit(fastmath={"reassoc", "contract", "arcp", "nsz"})
def _cross_entropy(logits, target, loss, ignore_index, partial, block):
    rows, vocab = logits.shape
    for row in range(rows):
        wanted = target[row]
        if wanted == ignore_index:
            loss[row] = 0.0
            continue
        source = logits[row]
        top = np.float32(-np.inf)
        total = np.float32(0.0)
        for start in range(0, vocab, block):
            stop = min(start + block, vocab)
            highest = top
            for col in range(start, stop):
                highest = max(highest, source[col])
            safe = np.float32(0.0) if highest == -np.inf else highest
            total *= _exp(top - safe)
            top = highest
            for col in range(start, stop):
                total += _exp(source[col] - safe)
        loss[row] = np.log(total) + top - source[wanted] if top > -np.inf else np.float32(np.nan)


def run(logits, target, loss, *, ignore_index):
    block, vocab = PARAMS["BLOCK"], logits.shape[1]
    if isinstance(block, dict):
        block = block["short"] if vocab <= 8192 else block["medium"] if vocab <= 65536 else block["long"]
    partial = np.empty(block, np.float32)
    _cross_entropy(logits, target, loss, ignore_index, partial, block)
