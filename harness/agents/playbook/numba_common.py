"""What the numba strategies of all operators share: decorators, BLOCK steps, threads."""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.playbook import edit
from harness.agents.playbook.move import Move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Backend, Direction, Tier

RELAXED = 'fastmath={"reassoc", "contract", "arcp", "nsz"}'
"""Lets sums be reordered and products fused but keeps NaN and infinity: without reordering a reduction is a chain of
dependent additions that no compiler may vectorise."""
FULL = "fastmath=True"


def njit(*options: str) -> str:
    """The decorator's text, ``numba.njit`` or ``numba.njit(...)``."""
    return f"numba.njit({', '.join(options)})" if options else "numba.njit"


def relaxed(source: str, function: str) -> bool:
    """Whether the function may reorder its sums."""
    return "reassoc" in edit.decorator(source, function) or FULL in edit.decorator(source, function)


def parallel_options(source: str, function: str) -> tuple[str, ...]:
    """The decorator's options for threads: ``parallel=True`` beside the numeric mode the function already has."""
    mode = FULL if FULL in edit.decorator(source, function) else RELAXED if relaxed(source, function) else None
    return ("parallel=True",) if mode is None else ("parallel=True", mode)


def has(source: str, function: str, *names: str) -> bool:
    """Whether the function exists and takes at least these arguments: otherwise a template would not fit it."""
    return set(names) <= set(edit.argument_names(source, function))


def block_moves(context: AgentContext, function: str, steps: tuple[int, ...], *, what: str, reach: float, most: float,
                applies: Callable[[str], bool], key: str = "BLOCK") -> list[Move]:
    """Light moves: other values of one PARAMS key, and a table over the operator's shape buckets."""
    tunable = context.spec.tunable(key, Backend.NUMBA)
    if tunable is None:
        return []
    low, high = context.goal.adjustable.get(key, (tunable.low, tunable.high))
    current = edit.params(context.incumbent.source).get(key)

    def value_move(value: int) -> Move:
        def transform(now: AgentContext) -> str | None:
            source = now.incumbent.source
            if not applies(source) or key not in edit.params(source) or edit.params(source)[key] == value:
                return None
            return edit.set_params(source, {key: value})

        # Small steps are predicted to give less: the prediction halves with every halving of the value.
        share = min(1.0, value / steps[0])
        return Move(f"{key.lower()}-{value}", Direction.TILING, function, Tier.LIGHT,
                    f"Set {key} to {value}: {what}.", f"{key} {current} to {value}", reach, most * share, transform,
                    evidence="tunables")

    def table(now: AgentContext) -> str | None:
        source, buckets = now.incumbent.source, now.spec.buckets
        value = edit.params(source).get(key)
        if buckets is None or not applies(source) or not isinstance(value, int):
            return None
        values = [min(high, max(low, value << shift)) for shift in range(len(buckets.bounds))]
        return edit.set_params(source, {key: dict(zip((name for name, _ in buckets.bounds), values, strict=True))})

    moves = [value_move(value) for value in steps if low <= value <= high]
    moves.append(Move(f"{key.lower()}-table", Direction.LAUNCH, function, Tier.LIGHT,
                      f"Let {key} grow with the shape: one value per bucket, doubled from bucket to bucket.",
                      f"{key} as a table over shape buckets", reach / 2, most / 4, table, evidence="tunables"))
    return moves


def thread_gain(context: AgentContext) -> float:
    """What parallel rows can gain: nothing on one thread, at most the thread count less one."""
    return 0.7 * (context.threads - 1)


def thread_text(context: AgentContext) -> str:
    """The honest word on threads for this hardware."""
    if context.threads == 1:
        return ("Spread the outer loop over threads. The timed hardware has one thread, so no gain is predicted; the "
                "round only confirms it.")
    return f"Spread the outer loop over the {context.threads} timed threads."
