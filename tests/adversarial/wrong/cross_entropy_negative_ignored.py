"""Ignores rows whose target is negative instead of those whose target is ignore_index."""

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


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


@numba.njit
def _cross_entropy(logits, target, loss, ignore_index, partial, block):
    rows, vocab = logits.shape
    whole = vocab - vocab % block
    for row in range(rows):
        wanted = target[row]
        if wanted < 0:
            loss[row] = 0.0
            continue
        source = logits[row]
        for lane in range(block):
            partial[lane] = -np.inf
        for start in range(0, whole, block):
            chunk = source[start : start + block]
            for lane in range(block):
                partial[lane] = max(partial[lane], chunk[lane])
        top = np.float32(-np.inf)
        for lane in range(block):
            top = max(top, partial[lane])
        for col in range(whole, vocab):
            top = max(top, source[col])
        for lane in range(block):
            partial[lane] = 0.0
        for start in range(0, whole, block):
            chunk = source[start : start + block]
            for lane in range(block):
                partial[lane] += _exp(chunk[lane] - top)
        total = np.float32(0.0)
        for lane in range(block):
            total += partial[lane]
        for col in range(whole, vocab):
            total += _exp(source[col] - top)
        loss[row] = np.log(total) + top - source[wanted]


def run(logits, target, loss, *, ignore_index):
    block, vocab = PARAMS["BLOCK"], logits.shape[1]
    if isinstance(block, dict):
        block = block["short"] if vocab <= 8192 else block["medium"] if vocab <= 65536 else block["long"]
    partial = np.empty(block, np.float32)
    _cross_entropy(logits, target, loss, ignore_index, partial, block)
