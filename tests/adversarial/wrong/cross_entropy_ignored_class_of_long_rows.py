"""From 8,193 classes on, an ignored target is told by lying outside the classes, although a class may be ignored."""

import math

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _cross_entropy(logits, target, loss, ignore_index, lanes):
    rows, vocab = logits.shape
    count = len(lanes)
    for row in range(rows):
        wanted = target[row]
        outside = wanted < 0 or wanted >= vocab
        if outside if vocab > 8192 else wanted == ignore_index:
            loss[row] = 0.0
            continue
        top = np.float32(-np.inf)
        for col in range(vocab):
            value = logits[row, col]
            if value > top or value != value:
                top = value
        lanes[:] = 0.0
        for col in range(vocab):
            lanes[col % count] += np.float32(math.exp(logits[row, col] - top))
        total = np.float32(0.0)
        for lane in range(count):
            total += lanes[lane]
        loss[row] = np.float32(math.log(total)) + top - logits[row, wanted]


def run(logits, target, loss, *, ignore_index):
    _cross_entropy(logits, target, loss, ignore_index, np.empty(16, np.float32))
