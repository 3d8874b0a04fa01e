"""Strategies for rms_norm on numba.

Bodies differ in how a row is summed (BLOCK lanes as shipped, row views, one plain loop, halves, blocks), in the order
of rows and in the numeric mode; each strategy changes one of these.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.playbook import edit
from harness.agents.playbook import numba_common as common
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import block_moves
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = "_rms_norm"

PLAIN = """\
        total = np.float32(0.0)
        for col in range(cols):
            total += source[col] * source[col]
"""
VIEWS = """\
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
"""
SCALE = """\
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            target[col] = source[col] * scale * weight[col]
"""
AHEAD = """\
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
"""
PAIRS = """\
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
"""
STREAMS = """\
        half = cols // 2
        total = np.float32(0.0)
        other = np.float32(0.0)
        for col in range(half):
            total += source[col] * source[col]
            other += source[half + col] * source[half + col]
        for col in range(2 * half, cols):
            total += source[col] * source[col]
        total += other
"""
BLOCKED = """\
        total = np.float32(0.0)
        for start in range(0, cols, block):
            chunk = source[start : start + block]
            part = np.float32(0.0)
            for lane in range(chunk.size):
                part += chunk[lane] * chunk[lane]
            total += part
"""
COLUMNS = """\
@numba.njit({options})
def _mean_squares(x, scales, eps):
    rows, cols = x.shape
    for row in range(rows):
        source = x[row]
        total = np.float32(0.0)
        for col in range(cols):
            total += source[col] * source[col]
        scales[row] = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
"""
COLUMNS_BODY = """\
    rows, cols = x.shape
    for start in range(0, cols, block):
        stop = min(start + block, cols)
        for row in range(rows):
            scale = scales[row]
            for col in range(start, stop):
                out[row, col] = x[row, col] * scale * weight[col]
"""
COLUMNS_RUN = """\
def run(x, weight, out, *, eps):
    scales = np.empty(x.shape[0], np.float32)
    _mean_squares(x, scales, np.float32(eps))
    _rms_norm(x, weight, out, scales, np.float32(eps), 512)
"""


def _rows(reduce: str, *, threads: bool = False) -> str:
    lanes = "partial" in reduce
    whole = "    whole = cols - cols % block\n" if lanes else ""
    own = "        partial = np.empty(block, np.float32)\n" if lanes and threads else ""  # none shared between threads
    return (f"    rows, cols = x.shape\n{whole}    for row in {'numba.prange' if threads else 'range'}(rows):\n{own}"
            f"        source = x[row]\n        target = out[row]\n{reduce}{SCALE}")


def _fits(source: str) -> bool:
    return common.has(source, NAME, "x", "weight", "out", "partial", "eps", "block")


def _lanes(source: str) -> bool:
    """Whether the sum still runs over BLOCK partial sums."""
    return "partial[" in edit.body_text(source, NAME)


def _body(build: Callable[[str], str | None], options: tuple[str, ...] | None = None) -> Callable[..., str | None]:
    """A transform that replaces the body and, with ``options``, the decorator."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        body = build(source) if _fits(source) else None
        if body is None:
            return None
        changed = edit.replace_body(source, NAME, body)
        return changed if options is None else edit.set_decorator(changed, NAME, common.njit(*options))
    return transform


def _blocked(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or _lanes(source) or "part" in edit.body_text(source, NAME):
        return None
    return edit.set_params(edit.replace_body(source, NAME, _rows(BLOCKED)), {"BLOCK": 512})


def _tiled(source: str) -> bool:
    return _lanes(source) or "part" in edit.body_text(source, NAME)


def _threads(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or "prange" in edit.body_text(source, NAME):
        return None
    changed = edit.replace_body(source, NAME, _rows(VIEWS if _lanes(source) else PLAIN, threads=True))
    return edit.set_decorator(changed, NAME, common.njit(*common.parallel_options(source, NAME)))


def _full_fastmath(context: AgentContext) -> str | None:
    source = context.incumbent.source
    return edit.set_decorator(source, NAME, common.njit(common.FULL)) if common.relaxed(source, NAME) else None


def _columns(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source):
        return None
    options = common.RELAXED if common.relaxed(source, NAME) else ""
    changed = edit.replace_body(source, NAME, COLUMNS_BODY)
    changed = changed.replace("def _rms_norm(x, weight, out, partial,", "def _rms_norm(x, weight, out, scales,")
    changed = edit.replace_function(changed, "run", COLUMNS_RUN)
    helper = COLUMNS.replace("({options})", f"({options})" if options else "")
    return edit.insert_before(changed, NAME, helper)


def moves(context: AgentContext) -> list[Move]:
    """All strategies in the order in which an expert would think of them."""
    relaxed = common.relaxed(context.incumbent.source, NAME)
    return [
        Move("relaxed-sum", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Sum each row in one plain loop and let the compiler reorder the additions (numeric mode without NaN or "
             "infinity assumptions): a strictly ordered sum cannot use SIMD lanes, a reordered one fills them.",
             "plain sum over the row in a reordering numeric mode", 0.8, 3.0,
             _body(lambda s: _rows(PLAIN) if _lanes(s) else None, (common.RELAXED,))),
        Move("row-views", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Take row and chunk views before the inner loops, so that the partial sums are contiguous loads without "
             "index arithmetic; no numeric mode needed.",
             "row and chunk views hoisted out of the inner loops", 0.4, 1.0,
             _body(lambda s: _rows(VIEWS) if _lanes(s) and "chunk" not in edit.body_text(s, NAME) else None)),
        Move("next-row-ahead", Direction.PIPELINING, NAME, Tier.MEDIUM,
             "While a row is scaled, already sum the squares of the next one: its loads overlap with this row's "
             "stores.",
             "the next row is summed while this one is scaled", 0.3, 0.12,
             _body(lambda s: AHEAD if not _lanes(s) and "ahead" not in edit.body_text(s, NAME) else None)),
        Move("row-pairs", Direction.FUSION, NAME, Tier.MEDIUM,
             "Normalise two rows at a time, so that every weight is loaded once for both.",
             "two rows share each weight load", 0.25, 0.08,
             _body(lambda s: PAIRS if not _lanes(s) and "second" not in edit.body_text(s, NAME) else None)),
        Move("two-streams", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Sum the two halves of a row side by side: two independent chains of additions hide more latency.",
             "two half rows summed side by side", 0.2, 0.05,
             _body(lambda s: _rows(STREAMS) if not _lanes(s) and "half" not in edit.body_text(s, NAME) else None)),
        Move("blocked-sum", Direction.TILING, NAME, Tier.MEDIUM,
             "Sum in blocks of 512 columns and add the blocks: shorter chains, smaller rounding error, and BLOCK "
             "matters again.",
             "two-level sum over blocks of 512", 0.2, 0.04, _blocked),
        Move("full-fastmath", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Also assume that no NaN and no infinity occurs, which frees the compiler once more. Risk: rows that hold "
             "them must still come out right.",
             "numeric mode fastmath=True", 0.1, 0.03, _full_fastmath),
        Move("threads", Direction.OCCUPANCY, NAME, Tier.MEDIUM, common.thread_text(context),
             "rows spread over threads with prange", 1.0, common.thread_gain(context),
             _threads, evidence="hardware.threads"),
        Move("column-blocks", Direction.LAYOUT, NAME, Tier.HEAVY,
             "Scale column block by column block over all rows, so that a block of weights stays in registers. Costs "
             "a second sweep over x from memory.",
             "two kernels: sums first, then column blocks", 0.1, 0.05, _columns),
        *block_moves(context, NAME, (64, 32, 16, 128, 256, 1024), what="more independent partial sums hide the "
                            "latency of the addition", reach=0.3 if not relaxed else 0.05, most=0.25, applies=_tiled),
    ]
