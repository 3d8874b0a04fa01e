"""Running means of eight lanes, joined by the squared distance of two means times the counts of both parts."""

import math

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _layer_norm(x, weight, bias, out, eps, means, spreads, counts):
    rows, cols = x.shape
    lanes = len(means)
    for row in range(rows):
        means[:] = 0.0
        spreads[:] = 0.0
        counts[:] = 0.0
        for col in range(cols):
            lane = col % lanes
            value = x[row, col]
            counts[lane] += np.float32(1.0)
            apart = value - means[lane]
            means[lane] += apart / counts[lane]
            spreads[lane] += apart * (value - means[lane])
        count, mean, spread = counts[0], means[0], spreads[0]
        for lane in range(1, lanes):
            if counts[lane] > 0:
                apart = means[lane] - mean
                both = count + counts[lane]
                spread += spreads[lane] + apart * apart * count * counts[lane] / both
                mean += apart * counts[lane] / both
                count = both
        scale = np.float32(1.0) / math.sqrt(spread / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = (x[row, col] - mean) * scale * weight[col] + bias[col]


def run(x, weight, bias, out, *, eps):
    means, spreads, counts = np.empty(8, np.float32), np.empty(8, np.float32), np.empty(8, np.float32)
    _layer_norm(x, weight, bias, out, np.float32(eps), means, spreads, counts)
