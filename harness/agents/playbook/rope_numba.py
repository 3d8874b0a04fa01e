"""Strategies for rope on numba.

Bodies differ in the order of the loops (over the heads of a block inside, as shipped, or over columns inside; sequences
or positions outside) and in how a head is reached (four indices as shipped, or views of its halves); each strategy
changes one of these.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.playbook import edit
from harness.agents.playbook import numba_common as common
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import block_moves
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = "_rope"
ARGUMENTS = ("x", "cos", "sin", "out", "block")

HEAD = """\
    batch, seq, heads, dim = x.shape
    half = dim // 2
"""
SEQUENCES = """\
    for item in {rows}(batch):
        for place in range(seq):
"""
POSITIONS = """\
    for place in range(seq):
        for item in range(batch):
"""
COLUMNS = """\
            for head in range(heads):
                for col in range(half):
                    c = cos[place, col]
                    s = sin[place, col]
                    left = x[item, place, head, col]
                    right = x[item, place, head, half + col]
                    out[item, place, head, col] = left * c - right * s
                    out[item, place, head, half + col] = right * c + left * s
"""
VIEWS = """\
            c = cos[place]
            s = sin[place]
            for head in range(heads):
                source = x[item, place, head]
                target = out[item, place, head]
                for col in range(half):
                    left = source[col]
                    right = source[half + col]
                    target[col] = left * c[col] - right * s[col]
                    target[half + col] = right * c[col] + left * s[col]
"""
HALVES = """\
            c = cos[place]
            s = sin[place]
            for head in range(heads):
                source = x[item, place, head]
                target = out[item, place, head]
                for col in range(half):
                    target[col] = source[col] * c[col] - source[half + col] * s[col]
                for col in range(half):
                    target[half + col] = source[half + col] * c[col] + source[col] * s[col]
"""
BOTH = """\
@numba.njit({options})
def _rope(q, k, cos, sin, q_out, k_out):
    batch, seq, q_heads, dim = q.shape
    half = dim // 2
    for item in range(batch):
        for place in range(seq):
            c = cos[place]
            s = sin[place]
            for head in range(q_heads + k.shape[2]):
                source = q[item, place, head] if head < q_heads else k[item, place, head - q_heads]
                target = q_out[item, place, head] if head < q_heads else k_out[item, place, head - q_heads]
                for col in range(half):
                    left = source[col]
                    right = source[half + col]
                    target[col] = left * c[col] - right * s[col]
                    target[half + col] = right * c[col] + left * s[col]
"""
BOTH_RUN = """\
def run(q, k, cos, sin, q_out, k_out):
    _rope(q, k, cos, sin, q_out, k_out)
"""


def _fits(source: str) -> bool:
    return edit.argument_names(source, NAME) == ARGUMENTS


def _blocked(source: str) -> bool:
    """Whether the heads of a block are still the innermost loop."""
    return _fits(source) and "start + block" in edit.body_text(source, NAME)


def _inner(source: str) -> str:
    """The loops over heads and columns that the incumbent has, where columns are inside."""
    body = edit.body_text(source, NAME)
    return next((text for text in (COLUMNS, VIEWS, HALVES) if text.strip() in body), VIEWS)


def _body(inner: str, applies: Callable[[str], bool]) -> Callable[[AgentContext], str | None]:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        if not _fits(source) or not applies(source) or inner.strip() in edit.body_text(source, NAME):
            return None
        return edit.replace_body(source, NAME, HEAD + SEQUENCES.format(rows="range") + inner)
    return transform


def _positions(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or _blocked(source) or POSITIONS in edit.body_text(source, NAME):
        return None
    return edit.replace_body(source, NAME, HEAD + POSITIONS + _inner(source))


def _threads(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or "prange" in edit.body_text(source, NAME):
        return None
    body = HEAD + SEQUENCES.format(rows="numba.prange") + _inner(source)
    return edit.set_decorator(edit.replace_body(source, NAME, body), NAME,
                              common.njit(*common.parallel_options(source, NAME)))


def _mode(option: str, applies: Callable[[str], bool]) -> Callable[[AgentContext], str | None]:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        return edit.set_decorator(source, NAME, common.njit(option)) if applies(source) else None
    return transform


def _one_pass(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or _blocked(source):
        return None
    options = common.RELAXED if common.relaxed(source, NAME) else ""
    both = BOTH.replace("({options})", f"({options})" if options else "")
    return edit.replace_function(edit.replace_function(source, NAME, both), "run", BOTH_RUN)


def moves(context: AgentContext) -> list[Move]:
    """All strategies in the order in which an expert would think of them."""
    return [
        Move("columns-inside", Direction.LAYOUT, NAME, Tier.MEDIUM,
             "Go through the columns of one head after the other: neighbours in memory are loaded and stored together "
             "and fill SIMD lanes, where the loop over heads jumps by a head's width. The angles come from the first "
             "cache either way.",
             "columns are the innermost loop", 0.8, 2.5, _body(COLUMNS, _blocked), basis="latency"),
        Move("head-views", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Take views of the head and of the angles before the loop over columns: no index arithmetic in four "
             "dimensions for every element.",
             "views of heads and angles hoisted out of the loop", 0.3, 0.1, _body(VIEWS, lambda s: not _blocked(s))),
        Move("half-by-half", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Write one half of a head after the other: one stream of stores at a time, at the price of reading the "
             "head twice from the first cache.",
             "two loops per head, one for each half", 0.2, 0.08, _body(HALVES, lambda s: not _blocked(s))),
        Move("contracted", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Let the compiler fuse a product with the sum (numeric mode without NaN or infinity assumptions): three "
             "instructions instead of four for every result, one rounding less. The loop waits for memory, so little "
             "is expected.",
             "numeric mode that contracts products and sums", 0.2, 0.05,
             _mode(common.RELAXED, lambda s: not common.relaxed(s, NAME)), basis="flops"),
        Move("full-fastmath", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Also assume that no NaN and no infinity occurs. Risk: heads that hold them must still come out right.",
             "numeric mode fastmath=True", 0.1, 0.02,
             _mode(common.FULL, lambda s: "reassoc" in edit.decorator(s, NAME)), basis="flops"),
        Move("positions-outside", Direction.TILING, NAME, Tier.MEDIUM,
             "Go through the sequences of one position before the next position: its angles are read once for the "
             "batch. Risk: consecutive heads then lie a whole sequence apart.",
             "positions outside, sequences inside", 0.2, 0.04, _positions, basis="bytes"),
        Move("threads", Direction.OCCUPANCY, NAME, Tier.MEDIUM, common.thread_text(context),
             "sequences spread over threads with prange", 1.0, common.thread_gain(context), _threads,
             evidence="hardware.threads"),
        Move("one-pass", Direction.FUSION, NAME, Tier.HEAVY,
             "Turn q and k in one pass over the positions: the angles are read once for both, and one call is saved.",
             "one kernel for q and k", 0.2, 0.06, _one_pass, evidence="profile.bytes"),
        *block_moves(context, NAME, (4, 32, 16, 1), what="as many heads as share the angles in registers and still "
                     "leave their rows in the first cache", reach=0.2, most=0.15, applies=_blocked),
    ]
