"""Walks tiles in bands of GROUP rows and takes the last band to be as tall as the others."""

import triton
import triton.language as tl

PARAMS = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP": 4, "num_warps": 4, "num_stages": 2}


@triton.jit
def _matmul(a, b, bias, out, m, k, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
            GROUP: tl.constexpr):
    width = tl.cdiv(n, BLOCK_N)
    band = GROUP * width
    place = tl.program_id(0) % band
    rows = (tl.program_id(0) // band * GROUP + place % GROUP) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = place // GROUP * BLOCK_N + tl.arange(0, BLOCK_N)
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
    tl.store(cells, result, mask=(rows < m)[:, None] & (columns < n)[None, :])


def run(a, b, bias, out):
    (m, k), n = a.shape, b.shape[1]
    bucket = "few" if m <= 64 else "some" if m <= 1024 else "many"
    chosen = {key: value[bucket] if isinstance(value, dict) else value for key, value in PARAMS.items()}
    tiles = triton.cdiv(m, chosen["BLOCK_M"]) * triton.cdiv(n, chosen["BLOCK_N"])
    _matmul[(tiles,)](
        a,
        b,
        bias,
        out,
        m,
        k,
        n,
        BLOCK_M=chosen["BLOCK_M"],
        BLOCK_N=chosen["BLOCK_N"],
        BLOCK_K=chosen["BLOCK_K"],
        GROUP=chosen["GROUP"],
        num_warps=chosen["num_warps"],
        num_stages=chosen["num_stages"],
    )
