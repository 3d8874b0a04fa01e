"""Wrong on purpose: a random last bit on every result."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


@numba.njit
def _layer_norm(x, weight, bias, out, partial, eps, block):
    rows, cols = x.shape
    whole = cols - cols % block
    for row in range(rows):
        source = x[row]
        target = out[row]
        for lane in range(block):
            partial[lane] = 0.0
        for start in range(0, whole, block):
            chunk = source[start : start + block]
            for lane in range(block):
                partial[lane] += chunk[lane]
        total = np.float32(0.0)
        for lane in range(block):
            total += partial[lane]
            partial[lane] = 0.0
        for col in range(whole, cols):
            total += source[col]
        mean = total / np.float32(cols)
        for start in range(0, whole, block):
            chunk = source[start : start + block]
            for lane in range(block):
                partial[lane] += (chunk[lane] - mean) * (chunk[lane] - mean)
        spread = np.float32(0.0)
        for lane in range(block):
            spread += partial[lane]
        for col in range(whole, cols):
            spread += (source[col] - mean) * (source[col] - mean)
        scale = np.float32(1.0) / math.sqrt(spread / np.float32(cols) + eps)
        for col in range(cols):
            noise = np.float32(1.0 + 1e-7 * np.random.random())
            target[col] = (source[col] - mean) * scale * weight[col] * noise + bias[col]


def run(x, weight, bias, out, *, eps):
    block = PARAMS["BLOCK"]
    if isinstance(block, dict):
        block = block["short"] if x.shape[1] <= 1024 else block["medium"] if x.shape[1] <= 4096 else block["long"]
    partial = np.empty(block, np.float32)
    _layer_norm(x, weight, bias, out, partial, np.float32(eps), block)
