"""Strategies for layer_norm on numba: the common ladder of row normalisations, and ways to sweep a row less often."""

from __future__ import annotations

from harness.agents.playbook.move import Move
from harness.agents.playbook.norm_numba import Norm, norm_moves
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

PLAIN = """\
        total = np.float32(0.0)
        for col in range(cols):
            total += source[col]
        mean = total / np.float32(cols)
        spread = np.float32(0.0)
        for col in range(cols):
            spread += (source[col] - mean) * (source[col] - mean)
"""
NORM = Norm(
    name="_layer_norm",
    arguments=("x", "weight", "bias", "out", "partial", "eps", "block"),
    rows="""\
        source = x[row]
        target = out[row]
""",
    finish="""\
        scale = np.float32(1.0) / math.sqrt(spread / np.float32(cols) + eps)
        for col in range(cols):
            target[col] = (source[col] - mean) * scale * weight[col] + bias[col]
""",
    plain=PLAIN,
    lanes="""\
        for lane in range(block):
            partial[lane] = 0.0
        for start in range(0, whole, block):
            chunk = source[start : start + block]
            for lane in range(block):
                partial[lane] += chunk[lane]
        total = np.float32(0.0)
        for lane in range(block):
            total += partial[lane]
            partial[lane] = 0.0
        for col in range(whole, cols):
            total += source[col]
        mean = total / np.float32(cols)
        for start in range(0, whole, block):
            chunk = source[start : start + block]
            for lane in range(block):
                partial[lane] += (chunk[lane] - mean) * (chunk[lane] - mean)
        spread = np.float32(0.0)
        for lane in range(block):
            spread += partial[lane]
        for col in range(whole, cols):
            spread += (source[col] - mean) * (source[col] - mean)
""",
    halves="""\
        half = cols // 2
        total = np.float32(0.0)
        other = np.float32(0.0)
        for col in range(half):
            total += source[col]
            other += source[half + col]
        for col in range(2 * half, cols):
            total += source[col]
        mean = (total + other) / np.float32(cols)
        spread = np.float32(0.0)
        other = np.float32(0.0)
        for col in range(half):
            spread += (source[col] - mean) * (source[col] - mean)
            other += (source[half + col] - mean) * (source[half + col] - mean)
        for col in range(2 * half, cols):
            spread += (source[col] - mean) * (source[col] - mean)
        spread += other
""",
    blocks="""\
        total = np.float32(0.0)
        for start in range(0, cols, block):
            chunk = source[start : start + block]
            part = np.float32(0.0)
            for lane in range(chunk.size):
                part += chunk[lane]
            total += part
        mean = total / np.float32(cols)
        spread = np.float32(0.0)
        for start in range(0, cols, block):
            chunk = source[start : start + block]
            part = np.float32(0.0)
            for lane in range(chunk.size):
                part += (chunk[lane] - mean) * (chunk[lane] - mean)
            spread += part
""",
    ahead="""\
    rows, cols = x.shape
    total = np.float32(0.0)
    for col in range(cols):
        total += x[0, col]
    for row in range(rows):
        source = x[row]
        target = out[row]
        ahead = x[min(row + 1, rows - 1)]
        mean = total / np.float32(cols)
        spread = np.float32(0.0)
        for col in range(cols):
            spread += (source[col] - mean) * (source[col] - mean)
        scale = np.float32(1.0) / math.sqrt(spread / np.float32(cols) + eps)
        total = np.float32(0.0)
        for col in range(cols):
            target[col] = (source[col] - mean) * scale * weight[col] + bias[col]
            total += ahead[col]
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
            total += first[col]
            other += second[col]
        mean = total / np.float32(cols)
        middle = other / np.float32(cols)
        total = np.float32(0.0)
        other = np.float32(0.0)
        for col in range(cols):
            total += (first[col] - mean) * (first[col] - mean)
            other += (second[col] - middle) * (second[col] - middle)
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        rescale = np.float32(1.0) / math.sqrt(other / np.float32(cols) + eps)
        for col in range(cols):
            lower[col] = (second[col] - middle) * rescale * weight[col] + bias[col]
            upper[col] = (first[col] - mean) * scale * weight[col] + bias[col]
""",
    sums=f"""\
@numba.njit{{options}}
def _means(x, scales, eps):
    rows, cols = x.shape
    for row in range(rows):
        source = x[row]
{PLAIN}        scales[row, 0] = mean
        scales[row, 1] = np.float32(1.0) / math.sqrt(spread / np.float32(cols) + eps)
""",
    columns="""\
    rows, cols = x.shape
    for start in range(0, cols, block):
        stop = min(start + block, cols)
        for row in range(rows):
            mean = scales[row, 0]
            scale = scales[row, 1]
            for col in range(start, stop):
                out[row, col] = (x[row, col] - mean) * scale * weight[col] + bias[col]
""",
    run="""\
def run(x, weight, bias, out, *, eps):
    scales = np.empty((x.shape[0], 2), np.float32)
    _means(x, scales, np.float32(eps))
    _layer_norm(x, weight, bias, out, scales, np.float32(eps), 512)
""",
)
SQUARES = NORM.body("""\
        total = np.float32(0.0)
        squares = np.float32(0.0)
        for col in range(cols):
            total += source[col]
            squares += source[col] * source[col]
        mean = total / np.float32(cols)
        spread = squares - total * mean
""")
JOINED = NORM.body("""\
        mean = np.float32(0.0)
        spread = np.float32(0.0)
        for start in range(0, cols, 1024):
            chunk = source[start : start + 1024]
            part = np.float32(0.0)
            for lane in range(chunk.size):
                part += chunk[lane]
            middle = part / np.float32(chunk.size)
            part = np.float32(0.0)
            for lane in range(chunk.size):
                part += (chunk[lane] - middle) * (chunk[lane] - middle)
            share = np.float32(chunk.size) / np.float32(start + chunk.size)
            apart = middle - mean
            spread += part + apart * apart * np.float32(start) * share
            mean += apart * share
""")


def moves(context: AgentContext) -> list[Move]:
    """All strategies in the order in which an expert would think of them."""
    return [
        *norm_moves(context, NORM),
        Move("joined-blocks", Direction.ALGORITHM, NORM.name, Tier.MEDIUM,
             "Take mean and spread of 1024 columns at a time, while they are in the nearest cache, and join them "
             "(Chan's formula): one sweep over the row less, with two-pass accuracy.",
             "mean and spread joined from blocks of 1024", 0.3, 0.1, NORM.unless("middle", JOINED),
             evidence="profile.passes"),
        Move("mean-of-squares", Direction.PRECISION, NORM.name, Tier.MEDIUM,
             "Take the variance as the mean square less the squared mean: one sweep over the row less. Risk: where a "
             "row lies far from 0 the two cancel, and the bound demands two-pass accuracy.",
             "variance from the sums of values and squares", 0.4, 0.3, NORM.unless("squares", SQUARES),
             evidence="profile.passes"),
    ]
