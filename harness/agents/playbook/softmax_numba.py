"""Strategies for softmax on numba.

The shipped kernel reads each row three times and takes every exponential twice. A body is rendered from three features:
whether exponentials are kept in ``out`` (fused), how they are normalised (division or one reciprocal per row), and how
sums run (BLOCK lanes in order, or one plain reordered loop). The exponential itself is a second function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.agents.playbook import edit
from harness.agents.playbook import numba_common as common
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import block_moves
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME, EXP = "_softmax", "_exp"

TOP = """\
        for lane in range(block):
            partial[lane] = -np.inf
        for start in range(0, whole, block):
            chunk = source[start : start + block]
            for lane in range(block):
                partial[lane] = max(partial[lane], chunk[lane])
        top = np.float32(-np.inf)
        for lane in range(block):
            top = max(top, partial[lane])
        for col in range(whole, cols):
            top = max(top, source[col])
"""
LANES_OPEN = """\
        for lane in range(block):
            partial[lane] = 0.0
        for start in range(0, whole, block):
            chunk = source[start : start + block]
"""
LANES_CLOSE = """\
        total = np.float32(0.0)
        for lane in range(block):
            total += partial[lane]
        for col in range(whole, cols):
"""
ONLINE = """\
    rows, cols = x.shape
    for row in range(rows):
        source = x[row]
        target = out[row]
        top = source[0]
        total = np.float32(0.0)
        for start in range(0, cols, block):
            stop = min(start + block, cols)
            highest = top
            for col in range(start, stop):
                highest = max(highest, source[col])
            total *= _exp(top - highest)
            top = highest
            for col in range(start, stop):
                total += _exp(source[col] - top)
        for col in range(cols):
            target[col] = _exp(source[col] - top) / total
"""
FAST_EXP = """\
    # Adding 1.5 * 2**23 rounds to the nearest integer and leaves it in the low bits; then a degree-6 polynomial.
    shifted = max(x, np.float32(-87.0)) * np.float32(1.44269504) + np.float32(12582912.0)
    power = shifted - np.float32(12582912.0)
    rest = x - power * np.float32(0.693359375) + power * np.float32(2.12194440e-4)
    value = np.float32(1.9875691500e-4)
    value = value * rest + np.float32(1.3981999507e-3)
    value = value * rest + np.float32(8.3334519073e-3)
    value = value * rest + np.float32(4.1665795894e-2)
    value = value * rest + np.float32(1.6666665459e-1)
    value = value * rest + np.float32(5.0000001201e-1)
    value = value * rest * rest + rest + np.float32(1.0)
    scale = np.int32(np.int32(np.float32(shifted).view(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)
    return np.float32(0.0) if x < np.float32(-87.0) else value * scale
"""
SHORT_TERMS = """\
    value = np.float32(4.1665795894e-2)
    value = value * rest + np.float32(1.6666665459e-1)
"""
EXACT = 'fastmath={"contract"}'
"""The rounding by a large constant must not be reordered away; products may still be fused."""


@dataclass(frozen=True, slots=True)
class Features:
    """What the body does now."""

    fused: bool
    reciprocal: bool
    plain: bool
    parallel: bool = False


def features(source: str) -> Features:
    """Read the features off the body."""
    body = edit.body_text(source, NAME)
    return Features("value" in body, "scale" in body, "piece" not in body and "+= _exp(chunk" not in body,
                    "prange" in body)


def render(wanted: Features) -> str:
    """The body that has these features."""
    loop = "numba.prange" if wanted.parallel else "range"
    own = "        partial = np.empty(block, np.float32)\n" if wanted.parallel else ""
    head = (f"    rows, cols = x.shape\n    whole = cols - cols % block\n    for row in {loop}(rows):\n"
            f"        source = x[row]\n        target = out[row]\n{own}{TOP}")
    return head + (_plain_sum(wanted.fused) if wanted.plain else _lane_sum(wanted.fused)) + _finish(wanted)


def _kept(indent: str, source: str, sink: str, total: str) -> str:
    return f"{indent}value = _exp({source} - top)\n{indent}{sink} = value\n{indent}{total} += value\n"


def _plain_sum(fused: bool) -> str:
    inner = (_kept(" " * 12, "source[col]", "target[col]", "total") if fused
             else "            total += _exp(source[col] - top)\n")
    return f"        total = np.float32(0.0)\n        for col in range(cols):\n{inner}"


def _lane_sum(fused: bool) -> str:
    if not fused:
        return (f"{LANES_OPEN}            for lane in range(block):\n"
                f"                partial[lane] += _exp(chunk[lane] - top)\n{LANES_CLOSE}"
                "            total += _exp(source[col] - top)\n")
    return (f"{LANES_OPEN}            piece = target[start : start + block]\n            for lane in range(block):\n"
            f"{_kept(' ' * 16, 'chunk[lane]', 'piece[lane]', 'partial[lane]')}{LANES_CLOSE}"
            f"{_kept(' ' * 12, 'source[col]', 'target[col]', 'total')}")


def _finish(wanted: Features) -> str:
    kept = "target[col]" if wanted.fused else "_exp(source[col] - top)"
    if not wanted.reciprocal:
        return f"        for col in range(cols):\n            target[col] = {kept} / total\n"
    return ("        scale = np.float32(1.0) / total\n        for col in range(cols):\n"
            f"            target[col] = {kept} * scale\n")


def _fits(source: str) -> bool:
    return (common.has(source, NAME, "x", "out", "partial", "block") and common.has(source, EXP, "x")
            and "highest" not in edit.body_text(source, NAME))


def _blocked(source: str) -> bool:
    return "block" in edit.body_text(source, NAME)


def _feature(change: Callable[[Features], Features], options: tuple[str, ...] | None = None,
             ) -> Callable[[AgentContext], str | None]:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        if not _fits(source) or change(features(source)) == features(source):
            return None
        changed = edit.replace_body(source, NAME, render(change(features(source))))
        return changed if options is None else edit.set_decorator(changed, NAME, common.njit(*options))
    return transform


def _fast_exp(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or "shifted" in edit.body_text(source, EXP):
        return None
    return edit.set_decorator(edit.replace_body(source, EXP, FAST_EXP), EXP, common.njit(EXACT))


def _short_exp(context: AgentContext) -> str | None:
    source = context.incumbent.source
    body = edit.body_text(source, EXP)
    lines = body.split("\n")
    terms = [i for i, line in enumerate(lines) if line.strip().startswith("value = value * rest + ")]
    first = next((i for i, line in enumerate(lines) if line.strip().startswith("value = np.float32(1.98")), None)
    if first is None or len(terms) < 5:
        return None
    shorter = [*lines[:first], *SHORT_TERMS.rstrip("\n").split("\n"), *lines[terms[4]:]]
    return edit.replace_body(source, EXP, "\n".join(shorter))


def _online(context: AgentContext) -> str | None:
    source = context.incumbent.source
    return edit.replace_body(source, NAME, ONLINE) if _fits(source) else None


def _threads(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or features(source).parallel:
        return None
    changed = edit.replace_body(source, NAME, render(replace(features(source), parallel=True)))
    return edit.set_decorator(changed, NAME, common.njit(*common.parallel_options(source, NAME)))


def moves(context: AgentContext) -> list[Move]:
    """All strategies in the order in which an expert would think of them."""
    plain = (common.RELAXED,)
    return [
        Move("keep-exponentials", Direction.FUSION, NAME, Tier.MEDIUM,
             "Write each exponential to out when it is summed and only rescale it afterwards: half of the "
             "exponentials and one read of x disappear.",
             "exponentials are kept in out instead of taken twice", 0.4, 0.3,
             _feature(lambda f: replace(f, fused=True)), evidence="profile.passes"),
        Move("relaxed-sum", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Sum in one plain loop and let the compiler reorder the additions (no NaN or infinity assumptions), so "
             "that sums and exponentials share full SIMD registers.",
             "plain sum in a reordering numeric mode", 0.5, 0.5,
             _feature(lambda f: replace(f, plain=True), plain)),
        Move("bitwise-exp", Direction.VECTORISATION, EXP, Tier.MEDIUM,
             "Round inside the exponential by adding a large constant and build the power of two from its bits: no "
             "floor call and no conversion, 32-bit lanes throughout.",
             "exponential without floor and conversions", 0.2, 0.15, _fast_exp),
        Move("one-reciprocal", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Divide once per row and multiply per element: a division costs several multiplications.",
             "one reciprocal per row", 0.15, 0.1, _feature(lambda f: replace(f, reciprocal=True))),
        Move("short-polynomial", Direction.PRECISION, EXP, Tier.MEDIUM,
             "Drop two terms of the exponential's polynomial. Risk: the float32 error bound may not allow it.",
             "degree-4 polynomial in the exponential", 0.2, 0.12, _short_exp),
        Move("online-maximum", Direction.ALGORITHM, NAME, Tier.MEDIUM,
             "Find maximum and sum in one sweep, rescaling the sum from block to block: one read of x less, one "
             "exponential per block more, but nothing is kept.",
             "running maximum and sum over blocks", 0.1, 0.08, _online, evidence="profile.passes"),
        Move("threads", Direction.OCCUPANCY, NAME, Tier.MEDIUM, common.thread_text(context),
             "rows spread over threads with prange", 1.0, common.thread_gain(context),
             _threads, evidence="hardware.threads"),
        *block_moves(context, NAME, (64, 32, 128, 256, 8), what="more independent partial results hide the "
                            "latency of maximum and sum", reach=0.4, most=0.35, applies=_blocked),
    ]
