"""Writes all scores to scratch and gathers the values in a second launch."""

import torch
import triton
import triton.language as tl

PARAMS = {"BLOCK_N": 32, "num_warps": 4}


@triton.jit
def _score(q, k_cache, seq_lens, scores, max_seq, kv_heads, q_heads, dim, scale,
           BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    pair = tl.program_id(0).to(tl.int64)
    item, head = pair // q_heads, pair % q_heads
    positions = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    valid = positions < tl.load(seq_lens + item)
    columns = tl.arange(0, BLOCK_D)
    query = tl.load(q + pair * dim + columns, mask=columns < dim, other=0.0).to(tl.float32)
    rows = ((item * max_seq + positions[:, None]) * kv_heads + head // (q_heads // kv_heads)) * dim + columns[None, :]
    keys = tl.load(k_cache + rows, mask=valid[:, None] & (columns < dim)[None, :], other=0.0).to(tl.float32)
    found = tl.where(valid, tl.sum(keys * query[None, :], 1) * scale, float("-inf"))
    tl.store(scores + pair * max_seq + positions, found, mask=positions < max_seq)


@triton.jit
def _gather(scores, v_cache, seq_lens, out, max_seq, kv_heads, q_heads, dim,
            BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    pair = tl.program_id(0).to(tl.int64)
    item, head = pair // q_heads, pair % q_heads
    length = tl.load(seq_lens + item)
    columns = tl.arange(0, BLOCK_D)
    top = tl.full([], float("-inf"), tl.float32)
    for start in range(0, length, BLOCK_N):
        positions = start + tl.arange(0, BLOCK_N)
        found = tl.load(scores + pair * max_seq + positions, mask=positions < length, other=float("-inf"))
        top = tl.maximum(top, tl.max(found, 0))
    total = tl.zeros([], tl.float32)
    gathered = tl.zeros([BLOCK_D], tl.float32)
    for start in range(0, length, BLOCK_N):
        positions = start + tl.arange(0, BLOCK_N)
        valid = positions < length
        shares = tl.exp(tl.load(scores + pair * max_seq + positions, mask=valid, other=float("-inf")) - top)
        rows = ((item * max_seq + positions[:, None]) * kv_heads + head // (q_heads // kv_heads)) * dim
        mask = valid[:, None] & (columns < dim)[None, :]
        values = tl.load(v_cache + rows + columns[None, :], mask=mask, other=0.0).to(tl.float32)
        gathered += tl.sum(shares[:, None] * values, 0)
        total += tl.sum(shares, 0)
    tl.store(out + pair * dim + columns, tl.where(length > 0, gathered / total, 0.0), mask=columns < dim)


def run(q, k_cache, v_cache, seq_lens, out, *, scale):
    batch, q_heads, dim = q.shape
    max_seq, kv_heads = k_cache.shape[1], k_cache.shape[2]
    width, pairs = triton.next_power_of_2(dim), batch * q_heads
    scores = torch.empty((pairs, max_seq), device=q.device, dtype=torch.float32)
    _score[(pairs, triton.cdiv(max_seq, PARAMS["BLOCK_N"]))](
        q, k_cache, seq_lens, scores, max_seq, kv_heads, q_heads, dim, scale, BLOCK_D=width, **PARAMS)
    _gather[(pairs,)](scores, v_cache, seq_lens, out, max_seq, kv_heads, q_heads, dim, BLOCK_D=width, **PARAMS)
