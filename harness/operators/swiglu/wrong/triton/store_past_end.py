"""Wrong on purpose: the last block of every row is stored whole."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def _swiglu(gate, up, out, cols, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * cols
    lanes = tl.arange(0, BLOCK)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        gates = tl.load(gate + first + offsets, mask=mask, other=0.0).to(tl.float32)
        ups = tl.load(up + first + offsets, mask=mask, other=0.0).to(tl.float32)
        whole = offsets < tl.cdiv(cols, BLOCK) * BLOCK
        tl.store(out + first + offsets, gates / (1.0 + tl.exp(-gates)) * ups, mask=whole)


def run(gate, up, out):
    rows, cols = gate.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "decode" if rows <= 128 else "chunk" if rows <= 4096 else "prefill"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    _swiglu[(rows,)](gate, up, out, cols, BLOCK=block, num_warps=warps)
