"""Finds maximum and sum per tile, then combines the tiles, with the tile width from a table."""

import math

import numba
import numpy as np

PARAMS = {"BLOCK": {"short": 64, "medium": 256, "long": 1024, "vocabulary": 1024}}


@numba.njit
def _softmax(x, out, tops, sums, width):
    rows, cols = x.shape
    tiles = (cols + width - 1) // width
    for row in range(rows):
        top = -np.inf
        for tile in range(tiles):
            first, last = tile * width, min(cols, tile * width + width)
            highest = -np.inf
            for col in range(first, last):
                highest = max(highest, x[row, col])
            base = highest if highest > -np.inf else 0.0
            total = 0.0
            for col in range(first, last):
                total += math.exp(x[row, col] - base)
            tops[tile] = base
            sums[tile] = total
            top = max(top, highest)
        whole = 0.0
        for tile in range(tiles):
            if sums[tile] != 0.0:
                whole += sums[tile] * math.exp(tops[tile] - top)
        for col in range(cols):
            out[row, col] = math.exp(x[row, col] - top) / whole if top > -np.inf else np.nan


def run(x, out):
    cols = x.shape[1]
    bucket = "short" if cols <= 1024 else "medium" if cols <= 4096 else "long" if cols <= 16384 else "vocabulary"
    width = PARAMS["BLOCK"][bucket]
    tiles = (cols + width - 1) // width
    tops = np.empty(tiles, np.float64)
    sums = np.empty(tiles, np.float64)
    _softmax(x, out, tops, sums, width)
