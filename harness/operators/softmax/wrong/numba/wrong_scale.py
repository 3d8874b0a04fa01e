"""Wrong on purpose: the result is divided by the length as well."""

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
def _softmax(x, out, partial, block):
    rows, cols = x.shape
    whole = cols - cols % block
    for row in range(rows):
        source = x[row]
        target = out[row]
        for lane in range(block):
            partial[lane] = -np.inf
        for start in range(0, whole, block):
            chunk = source[start : start + block]
            for lane in range(block):
                partial[lane] = max(partial[lane], chunk[lane])
        top = np.float32(-np.inf)
        for lane in range(block):
            top = max(top, partial[lane])
        for col in range(whole, cols):
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
        for col in range(whole, cols):
            total += _exp(source[col] - top)
        for col in range(cols):
            target[col] = _exp(source[col] - top) / total / np.float32(cols)


def run(x, out):
    block = PARAMS["BLOCK"]
    if isinstance(block, dict):
        cols = x.shape[1]
        bucket = "short" if cols <= 1024 else "medium" if cols <= 4096 else "long" if cols <= 16384 else "vocabulary"
        block = block[bucket]
    partial = np.empty(block, np.float32)
    _softmax(x, out, partial, block)
