"""Strategies for cross_entropy on numba.

The shipped kernel reads each row twice, once for the maximum and once for the sum, in BLOCK independent lanes. Bodies
differ in how sums run (lanes in order, or one plain reordered loop) and in how often a row is read.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.playbook import edit
from harness.agents.playbook import numba_common as common
from harness.agents.playbook.move import Move
from harness.agents.playbook.softmax_numba import EXACT, FAST_EXP
from harness.agents.playbook.values import block_moves
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME, EXP, ROW = "_cross_entropy", "_exp", "_row_loss"

OPEN = """\
    rows, vocab = logits.shape
    for row in {loop}(rows):
        wanted = target[row]
        if wanted == ignore_index:
            loss[row] = 0.0
            continue
        source = logits[row]
"""
PLAIN = """\
        top = source[0]
        for col in range(vocab):
            top = max(top, source[col])
        total = np.float32(0.0)
        for col in range(vocab):
            total += _exp(source[col] - top)
        loss[row] = np.log(total) + top - source[wanted]
"""
ONLINE = """\
        top = np.float32(-np.inf)
        total = np.float32(0.0)
        for start in range(0, vocab, block):
            stop = min(start + block, vocab)
            highest = top
            for col in range(start, stop):
                highest = max(highest, source[col])
            safe = np.float32(0.0) if highest == -np.inf else highest
            total *= _exp(top - safe)
            top = highest
            for col in range(start, stop):
                total += _exp(source[col] - safe)
        loss[row] = np.log(total) + top - source[wanted] if top > -np.inf else np.float32(np.nan)
"""
ROW_FUNCTION = """\
@numba.njit({mode})
def _row_loss(source, chosen):
    first = np.float32(0.0)
    top = source[0]
    for col in range(len(source)):
        top = max(top, source[col])
    half = len(source) // 2
    second = np.float32(0.0)
    for col in range(half):
        first += _exp(source[col] - top)
        second += _exp(source[half + col] - top)
    for col in range(2 * half, len(source)):
        first += _exp(source[col] - top)
    return np.log(first + second) + top - chosen
"""


def _fits(source: str) -> bool:
    arguments = ("logits", "target", "loss", "ignore_index", "block")
    return common.has(source, NAME, *arguments) and common.has(source, EXP, "x")


def _blocked(source: str) -> bool:
    return _fits(source) and "block" in edit.body_text(source, NAME)


def _body(text: str, loop: str, *options: str) -> Callable[[AgentContext], str | None]:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        body = OPEN.format(loop=loop) + text
        if not _fits(source) or ROW in source or edit.body_text(source, NAME) == body.rstrip("\n"):
            return None
        return edit.set_decorator(edit.replace_body(source, NAME, body), NAME, common.njit(*options))
    return transform


def _bitwise_exp(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or "shifted" in edit.body_text(source, EXP):
        return None
    return edit.set_decorator(edit.replace_body(source, EXP, FAST_EXP), EXP, common.njit(EXACT))


def _threads(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or "prange" in source:
        return None
    return _body(PLAIN, "numba.prange", *common.parallel_options(source, NAME))(context)


def _row_function(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or ROW in source:
        return None
    body = OPEN.format(loop="range") + "        loss[row] = _row_loss(source, source[wanted])\n"
    changed = edit.replace_body(source, NAME, body)
    return edit.insert_before(changed, NAME, ROW_FUNCTION.format(mode=common.RELAXED))


def moves(context: AgentContext) -> list[Move]:
    """All strategies in the order in which an expert would think of them."""
    return [
        Move("relaxed-sum", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Find the maximum and sum in plain loops and let the compiler reorder them (no NaN or infinity "
             "assumptions), so that exponentials and sums share full SIMD registers instead of passing through a "
             "scratch array.",
             "plain maximum and sum in a reordering numeric mode", 0.3, 0.15, _body(PLAIN, "range", common.RELAXED)),
        Move("bitwise-exp", Direction.VECTORISATION, EXP, Tier.MEDIUM,
             "Round inside the exponential by adding a large constant and build the power of two from its bits: no "
             "floor call and no conversion, 32-bit lanes throughout.",
             "exponential without floor and conversions", 0.2, 0.1, _bitwise_exp),
        Move("online-blocks", Direction.ALGORITHM, NAME, Tier.MEDIUM,
             "Find maximum and sum block by block, rescaling the sum in between: a block of logits stays in the "
             "first-level cache for its second read, and memory is read once. A vocabulary's row fits the second-level "
             "cache anyway, so little is predicted.",
             "running maximum and sum over blocks", 0.1, 0.08, _online, evidence="profile.bytes"),
        Move("row-function", Direction.SPLIT_REDUCTION, ROW, Tier.HEAVY,
             "Give each row to a function of its own that sums both halves of the row side by side: two chains of "
             "additions hide the latency of one another.",
             "two interleaved sums per row in a function of their own", 0.2, 0.15, _row_function),
        Move("threads", Direction.OCCUPANCY, NAME, Tier.MEDIUM, common.thread_text(context),
             "rows spread over threads with prange", 1.0, common.thread_gain(context), _threads,
             evidence="hardware.threads"),
        *block_moves(context, NAME, (64, 32, 128, 256, 8), what="more independent partial results hide the latency of "
                     "maximum and sum", reach=0.9, most=0.9, applies=_blocked),
    ]


def _online(context: AgentContext) -> str | None:
    source = context.incumbent.source
    changed = _body(ONLINE, "range", common.RELAXED)(context)
    return None if changed is None else edit.set_params(changed, {"BLOCK": max(1024, _block(source))})


def _block(source: str) -> int:
    value = edit.params(source).get("BLOCK", 0)
    return value if isinstance(value, int) else 0
