"""Decode attention, one program per sequence and cache head: online softmax over blocks of BLOCK_N cache positions, the
query heads of the group together in one product."""

import triton
import triton.language as tl

PARAMS = {"BLOCK_N": 64, "UNROLL": 1, "CACHE_HINT": "", "num_warps": 4, "num_stages": 2, "maxnreg": 0}


@triton.jit
def _attend(
    q,
    k_cache,
    v_cache,
    seq_lens,
    out,
    max_seq,
    kv_heads,
    group,
    dim,
    scale,
    BLOCK_N: tl.constexpr,
    BLOCK_G: tl.constexpr,
    BLOCK_D: tl.constexpr,
    UNROLL: tl.constexpr,
    CACHE_HINT: tl.constexpr,
):
    item = tl.program_id(0).to(tl.int64)
    source = tl.program_id(1)
    length = tl.load(seq_lens + item)
    members = tl.arange(0, BLOCK_G)
    columns = tl.arange(0, BLOCK_D)
    inside = columns < dim
    heads = (item * kv_heads + source) * group + members
    own = (members < group)[:, None] & inside[None, :]
    query = tl.load(q + heads[:, None] * dim + columns[None, :], mask=own, other=0.0)
    top = tl.full([BLOCK_G], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_G], tl.float32)
    gathered = tl.zeros([BLOCK_G, BLOCK_D], tl.float32)
    for start in tl.range(0, length, BLOCK_N, loop_unroll_factor=UNROLL):
        positions = start + tl.arange(0, BLOCK_N)
        valid = positions < length
        rows = (item * max_seq + positions) * kv_heads + source
        cells = rows[:, None] * dim + columns[None, :]
        mask = valid[:, None] & inside[None, :]
        keys = tl.load(k_cache + cells, mask=mask, other=0.0, eviction_policy=CACHE_HINT)
        values = tl.load(v_cache + cells, mask=mask, other=0.0, eviction_policy=CACHE_HINT)
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee") * scale
        scores = tl.where(valid[None, :], scores, float("-inf"))
        highest = tl.maximum(top, tl.max(scores, 1))
        shares = tl.exp(scores - highest[:, None])
        shrink = tl.exp(top - highest)
        gathered = gathered * shrink[:, None]
        gathered = tl.dot(shares.to(values.dtype), values, gathered, input_precision="ieee")
        total = total * shrink + tl.sum(shares, 1)
        top = highest
    result = tl.where(length > 0, gathered / total[:, None], 0.0)
    tl.store(out + heads[:, None] * dim + columns[None, :], result, mask=own)


def run(q, k_cache, v_cache, seq_lens, out, *, scale):
    batch, q_heads, dim = q.shape
    max_seq, kv_heads = k_cache.shape[1], k_cache.shape[2]
    bucket = "short"
    for name, least in (("medium", 513), ("long", 2049), ("longer", 4097), ("huge", 8193), ("giant", 32769)):
        if max_seq >= least:
            bucket = name
    block, unroll, hint = PARAMS["BLOCK_N"], PARAMS["UNROLL"], PARAMS["CACHE_HINT"]
    warps, stages, registers = PARAMS["num_warps"], PARAMS["num_stages"], PARAMS["maxnreg"]
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(unroll, dict):
        unroll = unroll[bucket]
    if isinstance(hint, dict):
        hint = hint[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    if isinstance(stages, dict):
        stages = stages[bucket]
    if isinstance(registers, dict):
        registers = registers[bucket]
    group = q_heads // kv_heads
    _attend[(batch, kv_heads)](
        q,
        k_cache,
        v_cache,
        seq_lens,
        out,
        max_seq,
        kv_heads,
        group,
        dim,
        scale,
        BLOCK_N=block,
        BLOCK_G=max(16, triton.next_power_of_2(group)),
        BLOCK_D=max(16, triton.next_power_of_2(dim)),
        UNROLL=unroll,
        CACHE_HINT=hint,
        num_warps=warps,
        num_stages=stages,
        maxnreg=None if registers == 0 else int(registers),
    )
