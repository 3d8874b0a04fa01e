"""Splits each sequence over programs and combines the parts at a common maximum; empty parts weigh nothing."""

import torch
import triton
import triton.language as tl

PARAMS = {"BLOCK_N": 32, "SPLITS": 2, "num_warps": 4}


@triton.jit
def _part(q, k_cache, v_cache, seq_lens, tops, totals, sums, max_seq, kv_heads, q_heads, dim, scale,
          BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, SPLITS: tl.constexpr):
    pair = tl.program_id(0).to(tl.int64)
    split = tl.program_id(1)
    item, head = pair // q_heads, pair % q_heads
    source = head // (q_heads // kv_heads)
    length = tl.load(seq_lens + item)
    share = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK_N) * BLOCK_N
    columns = tl.arange(0, BLOCK_D)
    inside = columns < dim
    query = tl.load(q + pair * dim + columns, mask=inside, other=0.0).to(tl.float32)
    top = tl.full([], float("-inf"), tl.float32)
    total = tl.zeros([], tl.float32)
    gathered = tl.zeros([BLOCK_D], tl.float32)
    for start in range(split * share, tl.minimum(split * share + share, length), BLOCK_N):
        positions = start + tl.arange(0, BLOCK_N)
        valid = positions < length
        cells = ((item * max_seq + positions[:, None]) * kv_heads + source) * dim + columns[None, :]
        mask = valid[:, None] & inside[None, :]
        keys = tl.load(k_cache + cells, mask=mask, other=0.0).to(tl.float32)
        scores = tl.where(valid, tl.sum(keys * query[None, :], 1) * scale, float("-inf"))
        highest = tl.maximum(top, tl.max(scores, 0))
        shares = tl.exp(scores - highest)
        shrink = tl.exp(top - highest)
        values = tl.load(v_cache + cells, mask=mask, other=0.0).to(tl.float32)
        gathered = gathered * shrink + tl.sum(shares[:, None] * values, 0)
        total = total * shrink + tl.sum(shares, 0)
        top = highest
    place = pair * SPLITS + split
    tl.store(tops + place, top)
    tl.store(totals + place, total)
    tl.store(sums + place * BLOCK_D + columns, gathered)


@triton.jit
def _combine(tops, totals, sums, seq_lens, out, q_heads, dim, BLOCK_D: tl.constexpr, SPLITS: tl.constexpr):
    pair = tl.program_id(0).to(tl.int64)
    length = tl.load(seq_lens + pair // q_heads)
    columns = tl.arange(0, BLOCK_D)
    top = tl.full([], float("-inf"), tl.float32)
    for split in range(SPLITS):
        top = tl.maximum(top, tl.load(tops + pair * SPLITS + split))
    total = tl.zeros([], tl.float32)
    gathered = tl.zeros([BLOCK_D], tl.float32)
    for split in range(SPLITS):
        place = pair * SPLITS + split
        weight = tl.exp(tl.load(tops + place) - top)
        total += weight * tl.load(totals + place)
        gathered += weight * tl.load(sums + place * BLOCK_D + columns)
    result = tl.where(length > 0, gathered / total, 0.0)
    tl.store(out + pair * dim + columns, result, mask=columns < dim)


def run(q, k_cache, v_cache, seq_lens, out, *, scale):
    batch, q_heads, dim = q.shape
    max_seq, kv_heads = k_cache.shape[1], k_cache.shape[2]
    splits, width = PARAMS["SPLITS"], triton.next_power_of_2(dim)
    pairs = batch * q_heads
    tops = torch.empty((pairs, splits), device=q.device, dtype=torch.float32)
    totals = torch.empty((pairs, splits), device=q.device, dtype=torch.float32)
    sums = torch.empty((pairs, splits, width), device=q.device, dtype=torch.float32)
    _part[(pairs, splits)](q, k_cache, v_cache, seq_lens, tops, totals, sums, max_seq, kv_heads, q_heads, dim, scale,
                           BLOCK_N=PARAMS["BLOCK_N"], BLOCK_D=width, SPLITS=splits, num_warps=PARAMS["num_warps"])
    _combine[(pairs,)](tops, totals, sums, seq_lens, out, q_heads, dim, BLOCK_D=width, SPLITS=splits,
                       num_warps=PARAMS["num_warps"])
