"""Wrong on purpose: a NaN in gate is taken for zero."""

import numba
import numpy as np

PARAMS = {"BLOCK": 64}


@numba.njit
def _swiglu(gate, up, out, kept, block):
    rows, cols = gate.shape
    for row in range(rows):
        for start in range(0, cols, block):
            width = min(block, cols - start)
            for lane in range(width):
                kept[lane] = np.float32(1.0) / (np.float32(1.0) + np.exp(-gate[row, start + lane]))
            for lane in range(width):
                value = gate[row, start + lane]
                value = value if value == value else np.float32(0.0)
                factor = kept[lane] if kept[lane] == kept[lane] else np.float32(0.0)
                out[row, start + lane] = value * factor * up[row, start + lane]


def run(gate, up, out):
    block = PARAMS["BLOCK"]
    if isinstance(block, dict):
        rows = gate.shape[0]
        block = block["decode"] if rows <= 128 else block["chunk"] if rows <= 4096 else block["prefill"]
    kept = np.empty(block, np.float32)
    _swiglu(gate, up, out, kept, block)
