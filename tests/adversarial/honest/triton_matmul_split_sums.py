"""Splits long sums over programs and adds the parts, the bias and GELU in a second kernel."""

import torch
import triton
import triton.language as tl

PARAMS = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP": 4, "SPLITS": 4, "num_warps": 4, "num_stages": 3}


@triton.jit
def _partial(
    a, b, parts, m, k, n, span,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, EVEN_K: tl.constexpr,
):
    place = tl.program_id(0)
    height, width = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    band = GROUP * width
    first = place // band * GROUP
    tall = tl.minimum(height - first, GROUP)
    rows = (first + place % band % tall) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = place % band // tall * BLOCK_N + tl.arange(0, BLOCK_N)
    begin = tl.program_id(1) * span
    end = tl.minimum(begin + span, k)
    terms = tl.arange(0, BLOCK_K)
    a_tile = a + (rows % m).to(tl.int64)[:, None] * k + begin + terms[None, :]
    b_tile = b + (begin + terms).to(tl.int64)[:, None] * n + (columns % n)[None, :]
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(begin, end, BLOCK_K):
        if EVEN_K:
            a_values = tl.load(a_tile)
            b_values = tl.load(b_tile)
        else:
            left = terms < end - start
            a_values = tl.load(a_tile, mask=left[None, :], other=0.0)
            b_values = tl.load(b_tile, mask=left[:, None], other=0.0)
        sums = tl.dot(a_values, b_values, sums, input_precision="ieee")
        a_tile += BLOCK_K
        b_tile += BLOCK_K * n
    cells = parts + (tl.program_id(1) * m + rows).to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(cells, sums, mask=(rows < m)[:, None] & (columns < n)[None, :])


@triton.jit
def _finish(parts, bias, out, n, total, splits, BLOCK: tl.constexpr):
    cells = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = cells < total
    sums = tl.load(bias + cells % n, mask=inside, other=0.0).to(tl.float32)
    for part in range(0, splits):
        sums += tl.load(parts + part * total + cells, mask=inside, other=0.0)
    power = tl.exp2(sums * (-2.302208198 - 0.1029432407 * sums * sums))
    tl.store(out + cells, sums / (1.0 + power), mask=inside)


def run(a, b, bias, out):
    (m, k), n = a.shape, b.shape[1]
    block_m, block_n, block_k = PARAMS["BLOCK_M"], PARAMS["BLOCK_N"], PARAMS["BLOCK_K"]
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    wanted = PARAMS["SPLITS"] if m <= 64 else 1
    span = triton.cdiv(triton.cdiv(k, wanted), block_k) * block_k
    splits = triton.cdiv(k, span)
    parts = torch.empty((splits, m, n), dtype=torch.float32, device=a.device)
    _partial[(tiles, splits)](
        a, b, parts, m, k, n, span, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP=PARAMS["GROUP"],
        EVEN_K=k % block_k == 0, num_warps=PARAMS["num_warps"], num_stages=PARAMS["num_stages"],
    )
    _finish[(triton.cdiv(m * n, 1024),)](parts, bias, out, n, m * n, splits, BLOCK=1024, num_warps=4)
