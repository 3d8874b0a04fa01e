"""Decode attention, serial per query head: BLOCK scores at a time, running maximum and sum rescaled in between."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": 4}


@numba.njit
def _attend(q, k_cache, v_cache, seq_lens, out, scores, scale, block):
    batch, q_heads, dim = q.shape
    group = q_heads // k_cache.shape[2]
    for item in range(batch):
        length = seq_lens[item]
        for head in range(q_heads):
            source = head // group
            top = np.float32(-np.inf)
            total = np.float32(0.0)
            for column in range(dim):
                out[item, head, column] = 0.0
            for start in range(0, length, block):
                stop = min(start + block, length)
                highest = top
                for position in range(start, stop):
                    dot = np.float32(0.0)
                    for column in range(dim):
                        dot += q[item, head, column] * k_cache[item, position, source, column]
                    scores[position - start] = dot * scale
                    highest = max(highest, dot * scale)
                shrink = math.exp(top - highest)
                top = highest
                total *= shrink
                for column in range(dim):
                    out[item, head, column] *= shrink
                for position in range(start, stop):
                    share = math.exp(scores[position - start] - top)
                    total += share
                    for column in range(dim):
                        out[item, head, column] += share * v_cache[item, position, source, column]
            if length > 0:
                for column in range(dim):
                    out[item, head, column] /= total


def run(q, k_cache, v_cache, seq_lens, out, *, scale):
    block = PARAMS["BLOCK"]
    max_seq = k_cache.shape[1]
    if isinstance(block, dict):
        bucket = "short"
        for name, least in (("medium", 513), ("long", 2049), ("longer", 4097), ("huge", 8193), ("giant", 32769)):
            if max_seq >= least:
                bucket = name
        block = block[bucket]
    scores = np.empty(block, np.float32)
    _attend(q, k_cache, v_cache, seq_lens, out, scores, np.float32(scale), block)
