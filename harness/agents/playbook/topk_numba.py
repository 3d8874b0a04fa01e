"""Strategies for topk on numba: blocks that cannot matter are skipped, and what is kept lies in a heap."""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.playbook import edit
from harness.agents.playbook import numba_common as common
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import block_moves
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME, BEATS = "_topk", "_beats"

OPEN = """\
    rows, cols = x.shape
    for row in {loop}(rows):
        source = x[row]
        best = values[row]
        place = indices[row]
        held = 0
"""
INSERT = """\
                at = min(held, k - 1)
                for higher in range(at - 1, -1, -1):
                    if not (value > best[higher] or (value != value and best[higher] == best[higher])):
                        break
                    best[at] = best[higher]
                    place[at] = place[higher]
                    at = higher
                best[at] = value
                place[at] = col
                held = min(held + 1, k)
"""
EACH = """\
        for start in range(0, cols, block):
            for col in range(start, min(start + block, cols)):
                value = source[col]
                if held == k and not (value > best[k - 1] or (value != value and best[k - 1] == best[k - 1])):
                    continue
"""
SKIPPING = """\
        for start in range(0, cols, block):
            stop = min(start + block, cols)
            if held == k:
                last = best[k - 1]
                above = 0
                for col in range(start, stop):
                    above += not source[col] <= last
                if above == 0:
                    continue
            for col in range(start, stop):
                value = source[col]
                if held == k and not (value > best[k - 1] or (value != value and best[k - 1] == best[k - 1])):
                    continue
"""
BEATS_FUNCTION = """\
@numba.njit
def _beats(value, col, other, other_col):
    if value > other:
        return True
    if value == other:
        return col < other_col
    return value != value and (other == other or col < other_col)
"""
SINK_FUNCTION = """\
@numba.njit
def _sink(best, place, size, at):
    # Puts what lies at position at of a heap of size elements, the worst on top, where it belongs.
    value, col = best[at], place[at]
    for _ in range(size):
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _beats(best[child], place[child], best[child + 1], place[child + 1]):
            child += 1
        if not _beats(value, col, best[child], place[child]):
            break
        best[at], place[at] = best[child], place[child]
        at = child
    best[at], place[at] = value, col
"""
HEAP = """\
    rows, cols = x.shape
    for row in range(rows):
        source = x[row]
        best = values[row]
        place = indices[row]
        for at in range(k):
            best[at] = source[at]
            place[at] = at
        for at in range(k // 2 - 1, -1, -1):
            _sink(best, place, k, at)
        for start in range(k, cols, block):
            stop = min(start + block, cols)
            last = best[0]
            above = 0
            for col in range(start, stop):
                above += not source[col] <= last
            if above == 0:
                continue
            for col in range(start, stop):
                value = source[col]
                if value > best[0] or (value != value and best[0] == best[0]):
                    best[0] = value
                    place[0] = col
                    _sink(best, place, k, 0)
        for size in range(k - 1, 0, -1):
            best[0], best[size] = best[size], best[0]
            place[0], place[size] = place[size], place[0]
            _sink(best, place, size, 0)
"""


def _fits(source: str) -> bool:
    return common.has(source, NAME, "x", "values", "indices", "k", "block")


def _inserting(source: str) -> bool:
    return _fits(source) and BEATS not in source


def _body(scan: str, loop: str = "range", block: int | None = None, *options: str
          ) -> Callable[[AgentContext], str | None]:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        body = OPEN.format(loop=loop) + scan + INSERT
        if not _inserting(source) or edit.body_text(source, NAME) == body.rstrip("\n"):
            return None
        changed = edit.set_decorator(edit.replace_body(source, NAME, body), NAME, common.njit(*options))
        return changed if block is None else edit.set_params(changed, {"BLOCK": block})
    return transform


def _heap(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _inserting(source) or "prange" in source:
        return None
    changed = edit.replace_body(source, NAME, HEAP)
    for text in (BEATS_FUNCTION, SINK_FUNCTION):
        changed = edit.insert_before(changed, NAME, text)
    return edit.set_params(changed, {"BLOCK": 64})


def _threads(context: AgentContext) -> str | None:
    source = context.incumbent.source
    scan = SKIPPING if "above" in edit.body_text(source, NAME) else EACH
    return None if "prange" in source else _body(scan, "numba.prange", None, "parallel=True")(context)


def moves(context: AgentContext) -> list[Move]:
    """All strategies in the order in which an expert would think of them."""
    return [
        Move("skip-blocks", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Count in one SIMD loop how many values of a block of 64 are not below the k-th best so far (NaN counts), "
             "and skip the block where none is: nearly all blocks of a long row, at a fraction of a cycle per value "
             "instead of a branch for each.",
             "blocks without a candidate are skipped; BLOCK 64", 0.8, 0.8, _body(SKIPPING, "range", 64)),
        Move("heap", Direction.ALGORITHM, NAME, Tier.HEAVY,
             "Keep the k best in a heap with the worst on top: a candidate costs log2(k) steps instead of k / 2 moves "
             "on average, and the heap is sorted once at the end.",
             "heap of the k best, blocks skipped; BLOCK 64", 0.7, 0.6, _heap),
        Move("threads", Direction.OCCUPANCY, NAME, Tier.MEDIUM, common.thread_text(context),
             "rows spread over threads with prange", 1.0, common.thread_gain(context), _threads,
             evidence="hardware.threads"),
        *block_moves(context, NAME, (128, 256, 32, 512), what="fewer looks at the k-th best, wider SIMD loops",
                     reach=0.3, most=0.2, applies=lambda source: "above" in source),
    ]
