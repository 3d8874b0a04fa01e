"""Wrong on purpose: the bias is added after GELU."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 256}


@numba.njit
def _matmul(a, b, bias, out, block):
    m, k = a.shape
    n = b.shape[1]
    for start in range(0, n, block):
        stop = min(start + block, n)
        for row in range(m):
            s0 = out[row, start:stop]
            for column in range(stop - start):
                s0[column] = 0.0
            for term in range(k):
                b0 = b[term, start:stop]
                f00 = a[row, term]
                for column in range(stop - start):
                    s0[column] += f00 * b0[column]
            for column in range(stop - start):
                s = s0[column]
                inner = np.float32(0.7978845608) * (s + np.float32(0.044715) * s * s * s)
                s0[column] = np.float32(0.5) * s * (np.float32(1.0) + math.tanh(inner))
                s0[column] += bias[start + column]


def run(a, b, bias, out):
    block = PARAMS["BLOCK"]
    if isinstance(block, dict):
        block = block["few"] if a.shape[0] <= 64 else block["some"] if a.shape[0] <= 1024 else block["many"]
    _matmul(a, b, bias, out, block)
