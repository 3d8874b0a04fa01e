"""Attends to the last 32 positions only."""

import triton
import triton.language as tl

PARAMS = {"BLOCK_N": 64, "num_warps": 4}


@triton.jit
def _attend(q, k_cache, v_cache, seq_lens, out, max_seq, kv_heads, q_heads, dim, scale,
            BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    item = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    source = head // (q_heads // kv_heads)
    length = tl.load(seq_lens + item)
    columns = tl.arange(0, BLOCK_D)
    inside = columns < dim
    query = tl.load(q + (item * q_heads + head) * dim + columns, mask=inside, other=0.0).to(tl.float32)
    top = tl.full([], float("-inf"), tl.float32)
    total = tl.zeros([], tl.float32)
    gathered = tl.zeros([BLOCK_D], tl.float32)
    for start in range(tl.maximum(length - 32, 0), length, BLOCK_N):
        positions = start + tl.arange(0, BLOCK_N)
        valid = positions < length
        rows = (item * max_seq + positions[:, None]) * kv_heads + source
        cells = rows * dim + columns[None, :]
        mask = valid[:, None] & inside[None, :]
        keys = tl.load(k_cache + cells, mask=mask, other=0.0).to(tl.float32)
        scores = tl.sum(keys * query[None, :], 1) * scale
        scores = tl.where(valid, scores, float("-inf"))
        highest = tl.maximum(top, tl.max(scores, 0))
        shares = tl.exp(scores - highest)
        shrink = tl.exp(top - highest)
        values = tl.load(v_cache + cells, mask=mask, other=0.0).to(tl.float32)
        gathered = gathered * shrink + tl.sum(shares[:, None] * values, 0)
        total = total * shrink + tl.sum(shares, 0)
        top = highest
    result = tl.where(length > 0, gathered / total, 0.0)
    tl.store(out + (item * q_heads + head) * dim + columns, result, mask=inside)


def run(q, k_cache, v_cache, seq_lens, out, *, scale):
    batch, q_heads, dim = q.shape
    max_seq, kv_heads = k_cache.shape[1], k_cache.shape[2]
    _attend[(batch, q_heads)](q, k_cache, v_cache, seq_lens, out, max_seq, kv_heads, q_heads, dim, scale,
                              BLOCK_D=triton.next_power_of_2(dim), **PARAMS)
