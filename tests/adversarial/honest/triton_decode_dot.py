"""Takes all query heads of a cache head together and uses matrix products on padded tiles."""

import triton
import triton.language as tl

PARAMS = {"BLOCK_N": 32, "num_warps": 4}


@triton.jit
def _attend(q, k_cache, v_cache, seq_lens, out, max_seq, kv_heads, group, dim, scale,
            BLOCK_G: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    item = tl.program_id(0).to(tl.int64)
    source = tl.program_id(1)
    length = tl.load(seq_lens + item)
    heads = tl.arange(0, BLOCK_G)
    columns = tl.arange(0, BLOCK_D)
    cells = ((item * kv_heads + source) * group + heads[:, None]) * dim + columns[None, :]
    wanted = (heads < group)[:, None] & (columns < dim)[None, :]
    query = tl.load(q + cells, mask=wanted, other=0.0)
    top = tl.full([BLOCK_G], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_G], tl.float32)
    gathered = tl.zeros([BLOCK_G, BLOCK_D], tl.float32)
    for start in range(0, length, BLOCK_N):
        positions = start + tl.arange(0, BLOCK_N)
        rows = ((item * max_seq + positions[:, None]) * kv_heads + source) * dim + columns[None, :]
        mask = (positions < length)[:, None] & (columns < dim)[None, :]
        keys = tl.load(k_cache + rows, mask=mask, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee") * scale
        scores = tl.where((positions < length)[None, :], scores, float("-inf"))
        highest = tl.maximum(top, tl.max(scores, 1))
        shares = tl.exp(scores - highest[:, None])
        shrink = tl.exp(top - highest)
        values = tl.load(v_cache + rows, mask=mask, other=0.0)
        gathered = gathered * shrink[:, None] + tl.dot(shares.to(values.dtype), values, input_precision="ieee")
        total = total * shrink + tl.sum(shares, 1)
        top = highest
    result = tl.where(length > 0, gathered / total[:, None], 0.0)
    tl.store(out + cells, result, mask=wanted)


def run(q, k_cache, v_cache, seq_lens, out, *, scale):
    batch, q_heads, dim = q.shape
    max_seq, kv_heads = k_cache.shape[1], k_cache.shape[2]
    group = q_heads // kv_heads
    _attend[(batch, kv_heads)](q, k_cache, v_cache, seq_lens, out, max_seq, kv_heads, group, dim, scale,
                               BLOCK_G=max(16, triton.next_power_of_2(group)),
                               BLOCK_D=max(16, triton.next_power_of_2(dim)), **PARAMS)
