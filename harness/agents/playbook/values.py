"""Light strategies for both backends: other values of one PARAMS key, and a table over the operator's buckets."""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.playbook import edit
from harness.agents.playbook.move import Move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier


def value_move(context: AgentContext, function: str, key: str, value: int, *, what: str, reach: float, most: float,
               applies: Callable[[str], bool] | None = None, direction: Direction = Direction.TILING) -> Move:
    """Set ``key`` to ``value``; does not apply where PARAMS lack the key or hold the value already."""
    current = edit.params(context.incumbent.source).get(key)

    def transform(now: AgentContext) -> str | None:
        source = now.incumbent.source
        held = edit.params(source)
        tunable = now.spec.tunable(key, now.goal.backend)
        inside = tunable is not None and tunable.low <= value <= tunable.high
        if not inside or key not in held or held[key] == value or (applies is not None and not applies(source)):
            return None
        return edit.set_params(source, {key: value})

    return Move(f"{key.lower()}-{value}", direction, function, Tier.LIGHT, f"Set {key} to {value}: {what}.",
                f"{key} {current} to {value}", reach, most, transform, evidence="tunables")


def table_move(context: AgentContext, function: str, key: str, *, reach: float, most: float,
               applies: Callable[[str], bool] | None = None) -> Move:
    """Let ``key`` double from bucket to bucket, starting at its present value."""
    def transform(now: AgentContext) -> str | None:
        source, buckets = now.incumbent.source, now.spec.buckets
        tunable, value = now.spec.tunable(key, now.goal.backend), edit.params(source).get(key)
        if buckets is None or tunable is None or not isinstance(value, int):
            return None
        if applies is not None and not applies(source):
            return None
        values = [min(tunable.high, max(tunable.low, value << step)) for step in range(len(buckets.bounds))]
        names = [name for name, _ in buckets.bounds]
        return edit.set_params(source, {key: dict(zip(names, values, strict=True))})

    return Move(f"{key.lower()}-table", Direction.LAUNCH, function, Tier.LIGHT,
                f"Let {key} grow with the shape: one value per bucket, doubled from bucket to bucket.",
                f"{key} as a table over shape buckets", reach, most, transform, evidence="tunables")


def block_moves(context: AgentContext, function: str, steps: tuple[int, ...], *, what: str, reach: float, most: float,
                applies: Callable[[str], bool], key: str = "BLOCK") -> list[Move]:
    """A ladder of values, the first step predicted best and every further one less: they are refinements of it."""
    moves = [value_move(context, function, key, value, what=what, reach=reach, most=most / (1 + 2 * place),
                        applies=applies) for place, value in enumerate(steps)]
    return [*moves, table_move(context, function, key, reach=reach / 2, most=most / 4, applies=applies)]
