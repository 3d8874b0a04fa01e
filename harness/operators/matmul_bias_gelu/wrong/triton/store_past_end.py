"""Wrong on purpose: the store is not masked, so tiles at the edge run past the end of the output."""

import triton
import triton.language as tl

PARAMS = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "num_warps": 4, "num_stages": 2}


@triton.jit
def _matmul(a, b, bias, out, m, k, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    width = tl.cdiv(n, BLOCK_N)
    rows = tl.program_id(0) // width * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) % width * BLOCK_N + tl.arange(0, BLOCK_N)
    terms = tl.arange(0, BLOCK_K)
    a_tile = a + rows.to(tl.int64)[:, None] * k + terms[None, :]
    b_tile = b + terms.to(tl.int64)[:, None] * n + columns[None, :]
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, k, BLOCK_K):
        left = terms < k - start
        a_values = tl.load(a_tile, mask=(rows < m)[:, None] & left[None, :], other=0.0)
        b_values = tl.load(b_tile, mask=left[:, None] & (columns < n)[None, :], other=0.0)
        sums = tl.dot(a_values, b_values, sums, input_precision="ieee")
        a_tile += BLOCK_K
        b_tile += BLOCK_K * n
    sums += tl.load(bias + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
    inner = 0.7978845608028654 * (sums + 0.044715 * sums * sums * sums)
    result = sums / (1.0 + tl.exp(-2.0 * inner))
    cells = out + rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(cells, result)


def run(a, b, bias, out):
    (m, k), n = a.shape, b.shape[1]
    bucket = "few" if m <= 64 else "some" if m <= 1024 else "many"
    block_m, block_n, block_k = PARAMS["BLOCK_M"], PARAMS["BLOCK_N"], PARAMS["BLOCK_K"]
    warps, stages = PARAMS["num_warps"], PARAMS["num_stages"]
    if isinstance(block_m, dict):
        block_m = block_m[bucket]
    if isinstance(block_n, dict):
        block_n = block_n[bucket]
    if isinstance(block_k, dict):
        block_k = block_k[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    if isinstance(stages, dict):
        stages = stages[bucket]
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    _matmul[(tiles,)](
        a,
        b,
        bias,
        out,
        m,
        k,
        n,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=warps,
        num_stages=stages,
    )
