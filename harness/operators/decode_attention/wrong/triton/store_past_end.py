"""Wrong on purpose: the store covers a padded head, so it runs past the end of the output."""

import triton
import triton.language as tl

PARAMS = {"BLOCK_N": 32, "num_warps": 4, "num_stages": 2}


@triton.jit
def _attend(
    q,
    k_cache,
    v_cache,
    seq_lens,
    out,
    max_seq,
    kv_heads,
    q_heads,
    dim,
    scale,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
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
    for start in range(0, length, BLOCK_N):
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
    tl.store(out + (item * q_heads + head) * dim + columns, result)


def run(q, k_cache, v_cache, seq_lens, out, *, scale):
    batch, q_heads, dim = q.shape
    max_seq, kv_heads = k_cache.shape[1], k_cache.shape[2]
    block, warps, stages = PARAMS["BLOCK_N"], PARAMS["num_warps"], PARAMS["num_stages"]
    bucket = "short" if max_seq <= 512 else "medium" if max_seq <= 2048 else "long"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    if isinstance(stages, dict):
        stages = stages[bucket]
    _attend[(batch, q_heads)](
        q,
        k_cache,
        v_cache,
        seq_lens,
        out,
        max_seq,
        kv_heads,
        q_heads,
        dim,
        scale,
        BLOCK_N=block,
        BLOCK_D=2 * triton.next_power_of_2(dim),
        num_warps=warps,
        num_stages=stages,
    )
