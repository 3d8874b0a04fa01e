"""Strategies for decode_attention on numba.

The shipped kernel walks the cache once per query head, BLOCK positions at a time, with scalar exponentials. Strategies
vectorise the dot product, hoist rows, inline a vectorisable exponential, take four value rows per sweep, and (heavy)
let the query heads of a group share each key and value that is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.agents.playbook import edit
from harness.agents.playbook import numba_common as common
from harness.agents.playbook.decode_attention_group import group_moves, grouped, is_grouped
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import block_moves
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = "_attend"

HEAD = """\
    batch, q_heads, dim = q.shape
    group = q_heads // k_cache.shape[2]
    for item in {loop}(batch):
{own}        length = seq_lens[item]
        for head in range(q_heads):
            query = q[item, head]
            source = head // group
            target = out[item, head]
            top = np.float32(-np.inf)
            total = np.float32(0.0)
            for column in range(dim):
                target[column] = 0.0
            for start in range(0, length, block):
                count = min(block, length - start)
                highest = top
                for offset in range(count):
                    key = k_cache[item, start + offset, source]
                    dot = np.float32(0.0)
                    for column in range(dim):
                        dot += query[column] * key[column]
                    scores[offset] = dot * scale
                    highest = max(highest, dot * scale)
                shrink = math.exp(top - highest)
                top = highest
                total *= shrink
                for column in range(dim):
                    target[column] *= shrink
"""
SCALAR_EXP = """\
                for offset in range(count):
                    share = math.exp(scores[offset] - top)
                    scores[offset] = share
                    total += share
"""
INLINE_EXP = """\
                for offset in range(count):
                    # exp by range reduction and a degree-6 polynomial: plain arithmetic, so the loop vectorises.
                    rest = scores[offset] - top
                    small = rest < np.float32(-87.0)
                    power = np.float32(math.floor(max(rest, np.float32(-87.0)) * np.float32(1.44269504)
                                                  + np.float32(0.5)))
                    rest = rest - power * np.float32(0.693359375) + power * np.float32(2.12194440e-4)
                    share = np.float32(1.9875691500e-4)
                    share = share * rest + np.float32(1.3981999507e-3)
                    share = share * rest + np.float32(8.3334519073e-3)
                    share = share * rest + np.float32(4.1665795894e-2)
                    share = share * rest + np.float32(1.6666665459e-1)
                    share = share * rest + np.float32(5.0000001201e-1)
                    share = share * rest * rest + rest + np.float32(1.0)
                    share *= np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)
                    share = np.float32(0.0) if small else share
                    scores[offset] = share
                    total += share
"""
ONE_ROW = """\
                for offset in range({first}, count):
                    share = scores[offset]
                    value = v_cache[item, start + offset, source]
                    for column in range(dim):
                        target[column] += share * value[column]
"""
FOUR_ROWS = """\
                fours = count - count % 4
                for offset in range(0, fours, 4):
                    s0 = scores[offset]
                    s1 = scores[offset + 1]
                    s2 = scores[offset + 2]
                    s3 = scores[offset + 3]
                    v0 = v_cache[item, start + offset, source]
                    v1 = v_cache[item, start + offset + 1, source]
                    v2 = v_cache[item, start + offset + 2, source]
                    v3 = v_cache[item, start + offset + 3, source]
                    for column in range(dim):
                        target[column] += s0 * v0[column] + s1 * v1[column] + s2 * v2[column] + s3 * v3[column]
"""
TAIL = """\
            if length > 0:
                for column in range(dim):
                    target[column] /= total
"""


@dataclass(frozen=True, slots=True)
class Features:
    """What the body does now; ``rows`` is false only for the shipped body, which indexes every element."""

    rows: bool
    inline_exp: bool
    four: bool
    parallel: bool = False


def features(source: str) -> Features:
    """Read the features off the body."""
    body = edit.body_text(source, NAME)
    return Features("key = k_cache[" in body, "power" in body, "fours" in body, "prange" in body)


def render(wanted: Features) -> str:
    """The body that has these features (always with hoisted rows)."""
    own = "        scores = np.empty(block, np.float32)\n" if wanted.parallel else ""
    head = HEAD.format(loop="numba.prange" if wanted.parallel else "range", own=own)
    values = FOUR_ROWS + ONE_ROW.format(first="fours") if wanted.four else ONE_ROW.format(first="0")
    return head + (INLINE_EXP if wanted.inline_exp else SCALAR_EXP) + values + TAIL


def _fits(source: str) -> bool:
    return (common.has(source, NAME, "q", "k_cache", "v_cache", "seq_lens", "out", "scores", "scale", "block")
            and not is_grouped(source, NAME))


def _feature(change: Callable[[Features], Features], options: tuple[str, ...] | None = None,
             ) -> Callable[[AgentContext], str | None]:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        if not _fits(source) or change(features(source)) == features(source):
            return None
        changed = edit.replace_body(source, NAME, render(change(features(source))))
        return changed if options is None else edit.set_decorator(changed, NAME, common.njit(*options))
    return transform


def _relaxed(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or common.relaxed(source, NAME):
        return None
    return edit.set_decorator(source, NAME, common.njit(common.RELAXED))


def _full_fastmath(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not common.relaxed(source, NAME) or common.FULL in edit.decorator(source, NAME):
        return None
    return edit.set_decorator(source, NAME, common.njit(common.FULL))


def _grouped(context: AgentContext) -> str | None:
    return grouped(context.incumbent.source, NAME) if _fits(context.incumbent.source) else None


def _threads(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or features(source).parallel:
        return None
    changed = edit.replace_body(source, NAME, render(replace(features(source), rows=True, parallel=True)))
    return edit.set_decorator(changed, NAME, common.njit(*common.parallel_options(source, NAME)))


def moves(context: AgentContext) -> list[Move]:
    """All strategies in the order in which an expert would think of them."""
    inlined = features(context.incumbent.source).inline_exp
    return [
        Move("group-heads", Direction.ALGORITHM, NAME, Tier.HEAVY,
             "Let the query heads of a group share every key and value: scores of the whole group first, then one "
             "softmax per head, then the weighted values. The cache is read once per group instead of once per head.",
             "query heads of a group share keys and values", 0.9, 2.5, _grouped, evidence="profile.bytes"),
        Move("relaxed-dot", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Let the compiler reorder the dot product's additions (no NaN or infinity assumptions): in strict order "
             "it is a chain of dependent additions, reordered it fills SIMD registers.",
             "dot product in a reordering numeric mode", 0.6, 0.9, _relaxed),
        Move("row-views", Direction.LAYOUT, NAME, Tier.MEDIUM,
             "Take query, key, value and output rows before the inner loops: contiguous loads without index "
             "arithmetic on four axes; exponentials are taken in a loop of their own.",
             "rows hoisted out of the inner loops", 0.1, 0.1, _feature(lambda f: replace(f, rows=True))),
        Move("inline-exp", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Replace the library exponential by a polynomial of the same accuracy in the loop over the block, which "
             "then vectorises over positions.",
             "vectorisable exponential in the block loop", 0.1, 0.08,
             _feature(lambda f: replace(f, rows=True, inline_exp=True))),
        Move("four-value-rows", Direction.PIPELINING, NAME, Tier.MEDIUM,
             "Add four weighted value rows per sweep over the output: a quarter of the loads and stores of the "
             "accumulator.",
             "four value rows per sweep", 0.2, 0.15, _feature(lambda f: replace(f, rows=True, four=True))),
        Move("full-fastmath", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Also assume that no NaN and no infinity occurs. Risk: the running maximum starts at minus infinity.",
             "numeric mode fastmath=True", 0.1, 0.03, _full_fastmath),
        Move("threads", Direction.OCCUPANCY, NAME, Tier.MEDIUM, common.thread_text(context),
             "sequences spread over threads with prange", 1.0, common.thread_gain(context),
             _threads, evidence="hardware.threads"),
        *group_moves(context, NAME),
        *block_moves(context, NAME, (256, 64, 16, 1024), what="fewer rescalings of the running output, more "
                            "scores per vectorised loop", reach=0.2, most=0.25 if inlined else 0.2, applies=_fits),
    ]
