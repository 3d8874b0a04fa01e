"""Strategies for add_rms_norm on numba: the common ladder of row normalisations, and the sum computed twice."""

from __future__ import annotations

from harness.agents.playbook.move import Move
from harness.agents.playbook.norm_numba import Norm, norm_moves
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

PLAIN = """\
        total = np.float32(0.0)
        for col in range(cols):
            value = left[col] + right[col]
            kept[col] = value
            total += value * value
"""
NORM = Norm(
    name="_add_rms_norm",
    arguments=("x", "residual", "weight", "out", "residual_out", "partial", "eps", "block"),
    rows="""\
        left = x[row]
        right = residual[row]
        kept = residual_out[row]
        target = out[row]
""",
    finish="""\
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            target[col] = kept[col] * scale * weight[col]
""",
    plain=PLAIN,
    lanes="""\
        for lane in range(block):
            partial[lane] = 0.0
        for start in range(0, whole, block):
            chunk = left[start : start + block]
            beside = right[start : start + block]
            sums = kept[start : start + block]
            for lane in range(block):
                value = chunk[lane] + beside[lane]
                sums[lane] = value
                partial[lane] += value * value
        total = np.float32(0.0)
        for lane in range(block):
            total += partial[lane]
        for col in range(whole, cols):
            value = left[col] + right[col]
            kept[col] = value
            total += value * value
""",
    halves="""\
        half = cols // 2
        total = np.float32(0.0)
        other = np.float32(0.0)
        for col in range(half):
            value = left[col] + right[col]
            kept[col] = value
            total += value * value
            later = left[half + col] + right[half + col]
            kept[half + col] = later
            other += later * later
        for col in range(2 * half, cols):
            value = left[col] + right[col]
            kept[col] = value
            total += value * value
        total += other
""",
    blocks="""\
        total = np.float32(0.0)
        for start in range(0, cols, block):
            chunk = left[start : start + block]
            beside = right[start : start + block]
            sums = kept[start : start + block]
            part = np.float32(0.0)
            for lane in range(chunk.size):
                value = chunk[lane] + beside[lane]
                sums[lane] = value
                part += value * value
            total += part
""",
    ahead="""\
    rows, cols = x.shape
    total = np.float32(0.0)
    for col in range(cols):
        value = x[0, col] + residual[0, col]
        residual_out[0, col] = value
        total += value * value
    for row in range(rows):
        kept = residual_out[row]
        target = out[row]
        ahead = min(row + 1, rows - 1)
        left = x[ahead]
        right = residual[ahead]
        coming = residual_out[ahead]
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        total = np.float32(0.0)
        for col in range(cols):
            target[col] = kept[col] * scale * weight[col]
            value = left[col] + right[col]
            coming[col] = value
            total += value * value
""",
    pairs="""\
    rows, cols = x.shape
    for row in range(0, rows, 2):
        second = min(row + 1, rows - 1)
        upper = residual_out[row]
        lower = residual_out[second]
        total = np.float32(0.0)
        other = np.float32(0.0)
        for col in range(cols):
            value = x[row, col] + residual[row, col]
            upper[col] = value
            total += value * value
            beside = x[second, col] + residual[second, col]
            lower[col] = beside
            other += beside * beside
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        rescale = np.float32(1.0) / math.sqrt(other / np.float32(cols) + eps)
        for col in range(cols):
            out[second, col] = lower[col] * rescale * weight[col]
            out[row, col] = upper[col] * scale * weight[col]
""",
    sums=f"""\
@numba.njit{{options}}
def _sums(x, residual, residual_out, scales, eps):
    rows, cols = x.shape
    for row in range(rows):
        left = x[row]
        right = residual[row]
        kept = residual_out[row]
{PLAIN}        scales[row] = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
""",
    columns="""\
    rows, cols = x.shape
    for start in range(0, cols, block):
        stop = min(start + block, cols)
        for row in range(rows):
            scale = scales[row]
            for col in range(start, stop):
                out[row, col] = residual_out[row, col] * scale * weight[col]
""",
    run="""\
def run(x, residual, weight, out, residual_out, *, eps):
    scales = np.empty(x.shape[0], np.float32)
    _sums(x, residual, residual_out, scales, np.float32(eps))
    _add_rms_norm(x, residual, weight, out, residual_out, scales, np.float32(eps), 512)
""",
)
AGAIN = NORM.body(PLAIN).replace("target[col] = kept[col] *", "target[col] = (left[col] + right[col]) *")


def moves(context: AgentContext) -> list[Move]:
    """All strategies in the order in which an expert would think of them."""
    return [
        *norm_moves(context, NORM),
        Move("add-again", Direction.FUSION, NORM.name, Tier.MEDIUM,
             "Add x and residual a second time for the result instead of reading back the sum just written: no load "
             "waits for a store. Costs an addition and one more array read, from the cache.",
             "the sum is computed twice", 0.2, 0.03, NORM.unless("(left[col] + right[col])", AGAIN)),
    ]
