"""One program for every position: its angles are loaded once, then all heads are turned in one tile, q's and k's."""

import triton
import triton.language as tl

PARAMS = {"num_warps": 4}


@triton.jit
def _turn(x, out, first, heads, half, c, s, HEADS: tl.constexpr, HALF: tl.constexpr):
    rows = tl.arange(0, HEADS)[:, None]
    cols = tl.arange(0, HALF)[None, :]
    mask = (rows < heads) & (cols < half)
    place = first + rows * (2 * half) + cols
    left = tl.load(x + place, mask=mask, other=0.0).to(tl.float32)
    right = tl.load(x + place + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + place, left * c - right * s, mask=mask)
    tl.store(out + place + half, left * s + right * c, mask=mask)


@triton.jit
def _rope(q, k, cos, sin, q_out, k_out, seq, q_heads, kv_heads, half, Q: tl.constexpr, K: tl.constexpr,
          HALF: tl.constexpr):
    position = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, HALF)[None, :]
    angle = position % seq * half + cols
    c = tl.load(cos + angle, mask=cols < half, other=0.0).to(tl.float32)
    s = tl.load(sin + angle, mask=cols < half, other=0.0).to(tl.float32)
    _turn(q, q_out, position * q_heads * (2 * half), q_heads, half, c, s, Q, HALF)
    _turn(k, k_out, position * kv_heads * (2 * half), kv_heads, half, c, s, K, HALF)


def run(q, k, cos, sin, q_out, k_out):
    batch, seq, q_heads, dim = q.shape
    kv_heads, half = k.shape[2], dim // 2
    _rope[(batch * seq,)](
        q, k, cos, sin, q_out, k_out, seq, q_heads, kv_heads, half,
        Q=triton.next_power_of_2(q_heads), K=triton.next_power_of_2(kv_heads), HALF=triton.next_power_of_2(half),
        num_warps=PARAMS["num_warps"],
    )
