"""Runs sequences and heads in parallel, with scratch per pair."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 16}


@numba.njit(parallel=True)
def _attend(q, k_cache, v_cache, seq_lens, out, scores, scale):
    batch, q_heads, dim = q.shape
    group = q_heads // k_cache.shape[2]
    for pair in numba.prange(batch * q_heads):
        item, head = pair // q_heads, pair % q_heads
        length = seq_lens[item]
        mine = scores[pair]
        top = -np.inf
        for position in range(length):
            score = 0.0
            for column in range(dim):
                score += q[item, head, column] * k_cache[item, position, head // group, column]
            mine[position] = score * scale
            top = max(top, mine[position])
        total = 0.0
        for position in range(length):
            mine[position] = math.exp(mine[position] - top)
            total += mine[position]
        for column in range(dim):
            gathered = 0.0
            for position in range(length):
                gathered += mine[position] * v_cache[item, position, head // group, column]
            out[item, head, column] = gathered / total if length > 0 else 0.0


def run(q, k_cache, v_cache, seq_lens, out, *, scale):
    scores = np.empty((q.shape[0] * q.shape[1], k_cache.shape[1]), np.float64)
    _attend(q, k_cache, v_cache, seq_lens, out, scores, scale)
