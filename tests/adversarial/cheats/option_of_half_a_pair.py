"""A launch option that no document can hold: half of a surrogate pair."""

import triton
import triton.language as tl

PARAMS = {}


@triton.jit
def _copy(x, out, cols):
    tl.store(out + tl.program_id(0) * cols, tl.load(x + tl.program_id(0) * cols))


def run(x, weight, out, *, eps):
    _copy[(x.shape[0],)](x, out, x.shape[1], **{"\ud800": 1})
