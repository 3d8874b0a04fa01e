"""Strategies for rms_norm on numba: the common ladder of row normalisations with this operator's texts."""

from __future__ import annotations

from harness.agents.playbook.move import Move
from harness.agents.playbook.norm_numba import Norm, norm_moves
from harness.agents.protocol import AgentContext

PLAIN = """\
        total = np.float32(0.0)
        for col in range(cols):
            total += source[col] * source[col]
"""
NORM = Norm(
    name="_rms_norm",
    arguments=("x", "weight", "out", "partial", "eps", "block"),
    rows="""\
        source = x[row]
        target = out[row]
""",
    finish="""\
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            target[col] = source[col] * scale * weight[col]
""",
    plain=PLAIN,
    lanes="""\
        for lane in range(block):
            partial[lane] = 0.0
        for start in range(0, whole, block):
            chunk = source[start : start + block]
            for lane in range(block):
                partial[lane] += chunk[lane] * chunk[lane]
        total = np.float32(0.0)
        for lane in range(block):
            total += partial[lane]
        for col in range(whole, cols):
            total += source[col] * source[col]
""",
    halves="""\
        half = cols // 2
        total = np.float32(0.0)
        other = np.float32(0.0)
        for col in range(half):
            total += source[col] * source[col]
            other += source[half + col] * source[half + col]
        for col in range(2 * half, cols):
            total += source[col] * source[col]
        total += other
""",
    blocks="""\
        total = np.float32(0.0)
        for start in range(0, cols, block):
            chunk = source[start : start + block]
            part = np.float32(0.0)
            for lane in range(chunk.size):
                part += chunk[lane] * chunk[lane]
            total += part
""",
    ahead="""\
    rows, cols = x.shape
    total = np.float32(0.0)
    for col in range(cols):
        total += x[0, col] * x[0, col]
    for row in range(rows):
        source = x[row]
        target = out[row]
        ahead = x[min(row + 1, rows - 1)]
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        total = np.float32(0.0)
        for col in range(cols):
            target[col] = source[col] * scale * weight[col]
            total += ahead[col] * ahead[col]
""",
    pairs="""\
    rows, cols = x.shape
    for row in range(0, rows, 2):
        first = x[row]
        second = x[min(row + 1, rows - 1)]
        upper = out[row]
        lower = out[min(row + 1, rows - 1)]
        total = np.float32(0.0)
        other = np.float32(0.0)
        for col in range(cols):
            total += first[col] * first[col]
            other += second[col] * second[col]
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        rescale = np.float32(1.0) / math.sqrt(other / np.float32(cols) + eps)
        for col in range(cols):
            lower[col] = second[col] * rescale * weight[col]
            upper[col] = first[col] * scale * weight[col]
""",
    sums=f"""\
@numba.njit{{options}}
def _mean_squares(x, scales, eps):
    rows, cols = x.shape
    for row in range(rows):
        source = x[row]
{PLAIN}        scales[row] = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
""",
    columns="""\
    rows, cols = x.shape
    for start in range(0, cols, block):
        stop = min(start + block, cols)
        for row in range(rows):
            scale = scales[row]
            for col in range(start, stop):
                out[row, col] = x[row, col] * scale * weight[col]
""",
    run="""\
def run(x, weight, out, *, eps):
    scales = np.empty(x.shape[0], np.float32)
    _mean_squares(x, scales, np.float32(eps))
    _rms_norm(x, weight, out, scales, np.float32(eps), 512)
""",
)


def moves(context: AgentContext) -> list[Move]:
    """All strategies in the order in which an expert would think of them."""
    return norm_moves(context, NORM)
