"""Names and comments contain words that a word filter would stumble over."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


@numba.njit
def _rms_norm(x, weight, out, stream, eps):
    rows, cols = x.shape
    lanes = stream.shape[0]
    whole = cols - cols % lanes
    for row in range(rows):
        for lane in range(lanes):
            stream[lane] = 0.0
        for start in range(0, whole, lanes):
            for lane in range(lanes):
                stream[lane] += x[row, start + lane] * x[row, start + lane]
        total = np.float32(0.0)
        for lane in range(lanes):
            total += stream[lane]
        for col in range(whole, cols):
            total += x[row, col] * x[row, col]
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = x[row, col] * scale * weight[col]


# eval(), exec, __import__, os.system and threading are only words here; open("x") is one more.


def run(x, weight, out, *, eps):
    stream = np.empty(PARAMS["BLOCK"], np.float32)
    cache = stream  # torch.cuda.Stream() is not used
    _rms_norm(x, weight, out, cache, np.float32(eps))
