"""Wrong on purpose: products are rounded to half precision before they are added."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 8, "num_warps": 4}


@triton.jit
def _rope(x, cos, sin, out, count, seq, heads, half, BLOCK: tl.constexpr, HALF: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, HALF)[None, :]
    mask = (rows < count) & (cols < half)
    angle = rows // heads % seq * half + cols
    c = tl.load(cos + angle, mask=mask, other=0.0).to(tl.float32)
    s = tl.load(sin + angle, mask=mask, other=0.0).to(tl.float32)
    place = rows * (2 * half) + cols
    left = tl.load(x + place, mask=mask, other=0.0).to(tl.float32)
    right = tl.load(x + place + half, mask=mask, other=0.0).to(tl.float32)
    narrow = x.dtype.element_ty
    turned = (left * s).to(narrow).to(tl.float32)
    tl.store(out + place, (left * c).to(narrow).to(tl.float32) - (right * s).to(narrow).to(tl.float32), mask=mask)
    tl.store(out + place + half, (right * c).to(narrow).to(tl.float32) + turned, mask=mask)


def run(q, k, cos, sin, q_out, k_out):
    batch, seq, q_heads, dim = q.shape
    kv_heads, half = k.shape[2], dim // 2
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "decode" if seq <= 16 else "chunk" if seq <= 4096 else "long"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    width = triton.next_power_of_2(half)
    q_count, k_count = batch * seq * q_heads, batch * seq * kv_heads
    _rope[(triton.cdiv(q_count, block),)](
        q, cos, sin, q_out, q_count, seq, q_heads, half, BLOCK=block, HALF=width, num_warps=warps
    )
    _rope[(triton.cdiv(k_count, block),)](
        k, cos, sin, k_out, k_count, seq, kv_heads, half, BLOCK=block, HALF=width, num_warps=warps
    )
