"""Wrong on purpose: a random last bit on every result."""

import numba
import numpy as np

PARAMS = {"BLOCK": 8}


@numba.njit
def _rope(x, cos, sin, out, block):
    batch, seq, heads, dim = x.shape
    half = dim // 2
    for item in range(batch):
        for place in range(seq):
            for start in range(0, heads, block):
                for col in range(half):
                    c = cos[place, col]
                    s = sin[place, col]
                    for head in range(start, min(start + block, heads)):
                        left = x[item, place, head, col]
                        right = x[item, place, head, half + col]
                        noise = np.float32(1.0 + 1e-7 * np.random.random())
                        out[item, place, head, col] = (left * c - right * s) * noise
                        out[item, place, head, half + col] = right * c + left * s


def run(q, k, cos, sin, q_out, k_out):
    block = PARAMS["BLOCK"]
    if isinstance(block, dict):
        seq = q.shape[1]
        block = block["decode"] if seq <= 16 else block["chunk"] if seq <= 4096 else block["long"]
    _rope(q, cos, sin, q_out, block)
    _rope(k, cos, sin, k_out, block)
