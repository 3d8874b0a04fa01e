"""Splits each sequence into parts with maxima of their own and combines them at the end."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 128}


@numba.njit
def _part(query, keys, values, first, last, scale, gathered):
    top = -np.inf
    total = 0.0
    gathered[:] = 0.0
    for position in range(first, last):
        score = 0.0
        for column in range(query.shape[0]):
            score += query[column] * keys[position, column]
        score *= scale
        if score > top:
            shrink = math.exp(top - score)
            total *= shrink
            gathered *= shrink
            top = score
        share = math.exp(score - top)
        total += share
        for column in range(query.shape[0]):
            gathered[column] += share * values[position, column]
    return top, total


@numba.njit
def _attend(q, k_cache, v_cache, seq_lens, out, part, answer, scale, block):
    batch, q_heads, dim = q.shape
    group = q_heads // k_cache.shape[2]
    for item in range(batch):
        for head in range(q_heads):
            keys, values = k_cache[item, :, head // group], v_cache[item, :, head // group]
            top = -np.inf
            total = 0.0
            answer[:] = 0.0
            for first in range(0, seq_lens[item], block):
                last = min(first + block, seq_lens[item])
                highest, added = _part(q[item, head], keys, values, first, last, scale, part)
                common = max(top, highest)
                old, new = math.exp(top - common), math.exp(highest - common)
                total = total * old + added * new
                for column in range(dim):
                    answer[column] = answer[column] * old + part[column] * new
                top = common
            for column in range(dim):
                out[item, head, column] = answer[column] / total if total > 0.0 else 0.0


def run(q, k_cache, v_cache, seq_lens, out, *, scale):
    part = np.empty(q.shape[2], np.float64)
    answer = np.empty(q.shape[2], np.float64)
    _attend(q, k_cache, v_cache, seq_lens, out, part, answer, scale, PARAMS["BLOCK"])
