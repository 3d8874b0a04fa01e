"""Classical autotuning as an agent (R24): the same starting kernel and budget, only PARAMS values change.

``exhaustive`` walks the whole grid from the current values outwards. ``halving`` (the default) starts from a spread of
single-key changes, keeps the better half of what was measured, and explores around the survivors with ever smaller
steps. Candidates are light-tier changes like any other; the measurements are the evaluator's, never its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from harness.agents.playbook import edit
from harness.agents.protocol import AgentContext, Attempt
from harness.domain.errors import UsageError
from harness.domain.proposal import Candidate, Hypothesis, Proposal
from harness.domain.vocabulary import Direction, Role, Tier
from harness.evaluation.source.normal_form import normal_digest
from harness.operators.base import Tunable

STRATEGIES = ("halving", "exhaustive")
DIRECTIONS = {"num_warps": Direction.OCCUPANCY, "num_stages": Direction.PIPELINING}
POINTS_PER_KEY = 16
"""Ranges are cut to this many values per key, spread evenly (by factor for powers of two)."""

Point = tuple[tuple[str, Any], ...]


class Autotune:
    """Searches declared tunables; deterministic in the context."""

    label = "classical search, no LLM"

    def __init__(self, strategy: str | None = None) -> None:
        self.strategy = strategy or "halving"
        if self.strategy not in STRATEGIES:
            raise UsageError(f"Autotune has no strategy '{self.strategy}'. Known: {', '.join(STRATEGIES)}.")

    def propose(self, context: AgentContext) -> Proposal:
        """The next untried point of the search, or giving up when none is left."""
        context.log.query()
        axes = axes_of(context)
        stated = context.hypotheses or hypotheses_of(context, axes)
        order = exhaustive(context, axes) if self.strategy == "exhaustive" else halving(context, axes)
        found = next(((point, source) for point in order if (source := _fresh(context, point)) is not None), None)
        trace = {"agent": self.label, "strategy": self.strategy, "points": _size(axes)}
        if found is None or not stated:
            return Proposal("give_up", True, reason=f"all reachable points of the search space ({_size(axes)}) were "
                                                    "tried.", trace=trace)
        point, source = found
        hypothesis = _hypothesis_for(context, stated, point)
        new = stated if not context.hypotheses else ()
        if context.purpose == "restructure":
            return Proposal("give_up", True, reason="a search over values cannot restructure a kernel.", trace=trace)
        summary = ", ".join(f"{key}={value}" for key, value in point)
        return Proposal("candidate", True, new, Candidate(hypothesis.id, source, summary), trace=trace)


def axes_of(context: AgentContext) -> dict[str, tuple[Any, ...]]:
    """The values of every light tunable that the starting kernel's PARAMS hold."""
    present = edit.params(context.baseline.source)
    axes = {}
    for tunable in context.spec.tunables:
        if context.goal.backend in tunable.backends and tunable.tier is Tier.LIGHT and tunable.key in present:
            axes[tunable.key] = values_of(tunable)
    return axes


def values_of(tunable: Tunable) -> tuple[Any, ...]:
    """The grid of one key, at most ``POINTS_PER_KEY`` values in ascending order."""
    if tunable.choices:
        return tunable.choices
    if tunable.power_of_two:
        values = [1 << power for power in range(tunable.high.bit_length()) if tunable.low <= 1 << power <= tunable.high]
    else:
        values = list(range(tunable.low, tunable.high + 1))
    step = -(-len(values) // POINTS_PER_KEY)
    return tuple(values[::step])


def hypotheses_of(context: AgentContext, axes: Mapping[str, tuple[Any, ...]]) -> tuple[Hypothesis, ...]:
    """Three to five hypotheses: smaller and larger values of each key, and their combinations."""
    function = next((name for name in edit.functions(context.baseline.source) if name != "run"), "run")
    found = []
    for key in axes:
        direction = DIRECTIONS.get(key, Direction.TILING)
        for word in ("smaller", "larger"):
            found.append(Hypothesis(f"{key.lower()}-{word}", direction, function,
                                    f"Some {word} {key} than the starting kernel's is faster; measure.", "tunables",
                                    0.0))
    found.append(Hypothesis("combined", Direction.LAUNCH, function,
                            "Values that help one by one may help together, per shape bucket or over several keys.",
                            "tunables", 0.0))
    return (*found[:-1][:4], found[-1]) if axes else ()


def exhaustive(context: AgentContext, axes: Mapping[str, tuple[Any, ...]]) -> Iterator[Point]:
    """Every point, those nearest to the starting values first."""
    start = _start(context, axes)
    grid = itertools.product(*axes.values())
    points = [tuple(zip(axes, values, strict=True)) for values in grid]
    yield from sorted(points, key=lambda point: (_distance(point, start, axes), str(point)))


def halving(context: AgentContext, axes: Mapping[str, tuple[Any, ...]]) -> Iterator[Point]:
    """Coarse to fine: single-key changes by ever smaller strides around the better half of the measured points."""
    start = _start(context, axes)
    survivors = [start, *_better_half(context, axes)]
    stride = max((len(values) for values in axes.values()), default=1) // 2
    while stride >= 1:
        for centre in sorted(survivors, key=lambda point: -_gain(context, point)):
            yield from _neighbours(centre, axes, stride)
        stride //= 2
    yield from _tables(context, survivors)


def _neighbours(centre: Point, axes: Mapping[str, tuple[Any, ...]], stride: int) -> Iterator[Point]:
    for key, values in axes.items():
        here = dict(centre)[key]
        if isinstance(here, dict) or here not in values:
            continue
        at = values.index(here)
        for other in (at + stride, at - stride):
            if 0 <= other < len(values):
                yield tuple((k, values[other] if k == key else v) for k, v in centre)


def _tables(context: AgentContext, survivors: list[Point]) -> Iterator[Point]:
    """Tables over the operator's shape buckets built from the two best values of a key."""
    buckets = context.spec.buckets
    ranked = sorted(survivors, key=lambda point: -_gain(context, point))
    if buckets is None or len(ranked) < 2:
        return
    names = [name for name, _ in buckets.bounds]
    for key in dict(ranked[0]):
        first, second = dict(ranked[0])[key], dict(ranked[1])[key]
        if first == second or isinstance(first, dict) or isinstance(second, dict):
            continue
        for split in range(1, len(names)):
            for low, high in ((first, second), (second, first)):
                table = {name: low if i < split else high for i, name in enumerate(names)}
                yield tuple((k, table if k == key else v) for k, v in ranked[0])


def _better_half(context: AgentContext, axes: Mapping[str, tuple[Any, ...]]) -> list[Point]:
    measured = [a for a in context.attempts if a.verdict.passed and a.verdict.timed]
    ranked = sorted(measured, key=_ratio, reverse=True)[: -(-len(measured) // 2)]
    return [_point(attempt, axes) for attempt in ranked]


def _point(attempt: Attempt, axes: Mapping[str, tuple[Any, ...]]) -> Point:
    values = edit.params(attempt.kernel.source)
    return tuple((key, values.get(key, axes[key][0])) for key in axes)


def _ratio(attempt: Attempt) -> float:
    ratio = attempt.verdict.ratio(Role.BASELINE) or attempt.verdict.ratio(Role.INCUMBENT)
    return ratio.ratio if ratio else 0.0


def _gain(context: AgentContext, point: Point) -> float:
    """The measured ratio of a point against the baseline; 1 for points nobody measured (the start among them)."""
    for attempt in context.attempts:
        values = edit.params(attempt.kernel.source)
        if all(values.get(key) == value for key, value in point) and attempt.verdict.timed:
            return _ratio(attempt)
    return 1.0


def _start(context: AgentContext, axes: Mapping[str, tuple[Any, ...]]) -> Point:
    values = edit.params(context.baseline.source)
    return tuple((key, values[key]) for key in axes)


def _distance(point: Point, start: Point, axes: Mapping[str, tuple[Any, ...]]) -> int:
    total = 0
    for (key, value), (_, origin) in zip(point, start, strict=True):
        values = axes[key]
        total += abs(values.index(value) - (values.index(origin) if origin in values else 0))
    return total


def _fresh(context: AgentContext, point: Point) -> str | None:
    """The source of a point on the incumbent, or ``None`` where that kernel was tried."""
    if point == _point_of(context.incumbent.source, point):
        return None
    source = edit.set_params(context.incumbent.source, dict(point))
    return None if normal_digest(source) in context.tried else source


def _point_of(source: str, like: Point) -> Point:
    values = edit.params(source)
    return tuple((key, values.get(key)) for key, _ in like)


def _hypothesis_for(context: AgentContext, stated: tuple[Hypothesis, ...], point: Point) -> Hypothesis:
    start = edit.params(context.baseline.source)
    changed = [(key, value) for key, value in point if start.get(key) != value]
    name = "combined"
    if len(changed) == 1 and isinstance(changed[0][1], int) and isinstance(start.get(changed[0][0]), int):
        key, value = changed[0]
        name = f"{key.lower()}-{'larger' if value > start[key] else 'smaller'}"
    known = {hypothesis.id: hypothesis for hypothesis in stated}
    return known.get(name) or known.get("combined") or stated[-1]


def _size(axes: Mapping[str, tuple[Any, ...]]) -> int:
    size = 1 if axes else 0
    for values in axes.values():
        size *= len(values)
    return size


__all__ = ["Autotune", "axes_of", "exhaustive", "halving", "hypotheses_of", "values_of"]
