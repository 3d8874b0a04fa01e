"""Divides by the number of positions instead of the sum of shares."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


@numba.njit
def _attend(q, k_cache, v_cache, seq_lens, out, scores, scale):
    batch, q_heads, dim = q.shape
    group = q_heads // k_cache.shape[2]
    for item in range(batch):
        length = seq_lens[item]
        for head in range(q_heads):
            source = head // group
            top = np.float32(-np.inf)
            for position in range(length):
                dot = np.float32(0.0)
                for column in range(dim):
                    dot += q[item, head, column] * k_cache[item, position, source, column]
                scores[position] = dot * scale
                top = max(top, scores[position])
            total = 0.0
            for position in range(length):
                scores[position] = math.exp(scores[position] - top)
                total += scores[position]
            for column in range(dim):
                gathered = 0.0
                for position in range(length):
                    gathered += scores[position] * v_cache[item, position, source, column]
                out[item, head, column] = gathered / length if length > 0 else 0.0


def run(q, k_cache, v_cache, seq_lens, out, *, scale):
    scores = np.empty(k_cache.shape[1], np.float32)
    _attend(q, k_cache, v_cache, seq_lens, out, scores, np.float32(scale))
