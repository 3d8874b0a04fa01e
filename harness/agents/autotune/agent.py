"""Classical autotuning as an agent: the same starting kernel and budget as any other, only PARAMS values change.

Every measured shape bucket is searched by itself, all of them in the same rounds: a candidate holds one point for each
bucket, and the verdict's figures per shape say what each was worth. ``exhaustive`` walks a bucket's whole grid from the
current values outwards; ``halving`` (the default) starts from a spread of single-key changes and explores around the
better half of what was measured with ever smaller steps. Points are ruled out by arithmetic first, then, where a
planner is given, by the resources of their compiled plans. Now and then, and at the end, the best points of all buckets
are put together. Candidates are light-tier changes like any other; the measurements are the evaluator's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from harness.agents.autotune.halving import coarse_to_fine, exhaustive
from harness.agents.autotune.history import BucketHistory, history_of
from harness.agents.autotune.space import Axes, Point, axes_of, infeasible, size_of, together
from harness.agents.playbook import edit
from harness.agents.protocol import AgentContext
from harness.backends.triton.targets import TARGETS
from harness.domain.errors import UsageError
from harness.domain.proposal import Candidate, Hypothesis, Proposal
from harness.domain.vocabulary import Direction
from harness.evaluation.source.normal_form import normal_digest
from harness.operators.base import OperatorSpec, ShapePoint

STRATEGIES = ("halving", "exhaustive")
DIRECTIONS = {"num_warps": Direction.OCCUPANCY, "num_stages": Direction.PIPELINING}
TOGETHER_EVERY = 4
"""After so many measured rounds the best points of all buckets are put together, if that is new."""
AHEAD = 8
"""Points of a bucket that the planner is asked about at once."""


class Planner(Protocol):
    """Compiles kernels without the device."""

    def problems(self, spec: OperatorSpec, workload: str, hardware: str,
                 asked: Sequence[tuple[str, tuple[ShapePoint, ...]]]) -> list[str]:
        """For every source and the shapes it is meant for: why it cannot run or breaks a limit, empty where it can."""
        ...


class Autotune:
    """Searches declared tunables; deterministic in the context."""

    label = "classical search, no LLM"

    def __init__(self, strategy: str | None = None, planner: Planner | None = None) -> None:
        self.strategy = strategy or "halving"
        if self.strategy not in STRATEGIES:
            raise UsageError(f"Autotune has no strategy '{self.strategy}'. Known: {', '.join(STRATEGIES)}.")
        self._planner = planner
        self._problems: dict[tuple[str, str], str] = {}

    def propose(self, context: AgentContext) -> Proposal:
        """The next untried points of the search, or giving up when none is left."""
        context.log.query()
        axes = axes_of(context.spec, context.goal.backend, context.baseline.source)
        trace = {"agent": self.label, "strategy": self.strategy, "points": size_of(axes)}
        if context.purpose == "restructure":
            return Proposal("give_up", True, reason="a search over values cannot restructure a kernel.", trace=trace)
        stated = context.hypotheses or hypotheses_of(context, axes)
        buckets = history_of(context, axes) if axes else {}
        found = self._next(context, axes, buckets) if stated else None
        if found is None:
            return Proposal("give_up", True, reason=f"all reachable points of the search space ({size_of(axes)}) were "
                                                    "tried.", trace=trace)
        chosen, source = found
        hypothesis = _hypothesis_for(stated, chosen, buckets)
        new = stated if not context.hypotheses else ()
        return Proposal("candidate", True, new, Candidate(hypothesis.id, source, _summary(chosen)), trace=trace)

    def _next(self, context: AgentContext, axes: Axes, buckets: Mapping[str, BucketHistory]
              ) -> tuple[dict[str, Point], str] | None:
        best = {name: bucket.best for name, bucket in buckets.items()}
        measured = sum(attempt.verdict.passed for attempt in context.attempts)
        if measured and measured % TOGETHER_EVERY == 0:
            found = _fresh(context, best)
            if found is not None:
                return best, found
        fresh = {name: point for name, bucket in buckets.items()
                 if (point := self._point(context, axes, name, bucket)) is not None}
        alone = [{**best, name: point} for name, point in fresh.items()]
        for chosen in [{**best, **fresh}, *alone, best]:
            found = _fresh(context, chosen)
            if found is not None:
                return chosen, found
        return None

    def _point(self, context: AgentContext, axes: Axes, name: str, bucket: BucketHistory) -> Point | None:
        """The bucket's next point that was not tried and that nothing rules out."""
        waiting: list[Point] = []
        for point in self._feasible(context, axes, bucket):
            if self._planner is None:
                return point
            waiting.append(point)
            if len(waiting) == AHEAD:
                found = self._planned(context, name, bucket, waiting)
                if found is not None:
                    return found
                waiting = []
        return self._planned(context, name, bucket, waiting) if waiting else None

    def _feasible(self, context: AgentContext, axes: Axes, bucket: BucketHistory) -> Iterator[Point]:
        order = (exhaustive(axes, bucket.start) if self.strategy == "exhaustive"
                 else coarse_to_fine(axes, bucket.start, bucket.gains))
        spec, goal = context.spec, context.goal
        dtype = spec.workloads[goal.workload].dtypes[goal.backend]
        fixed = edit.params(context.baseline.source)
        hardware = goal.hardware if goal.hardware in TARGETS else None
        seen: set[Point] = set()
        for point in order:
            if point in seen or point in bucket.tried:
                continue
            seen.add(point)
            if not infeasible(spec, goal.backend, point, bucket.shapes, hardware, dtype, fixed):
                yield point

    def _planned(self, context: AgentContext, name: str, bucket: BucketHistory, waiting: Sequence[Point]
                 ) -> Point | None:
        """The first of ``waiting`` whose plan can run within the limits; what was planned once is remembered."""
        assert self._planner is not None
        sources = {point: together(context.spec, context.baseline.source, {name: point}) for point in waiting}
        unknown = [point for point in waiting if (name, sources[point]) not in self._problems]
        if unknown:
            told = self._planner.problems(context.spec, context.goal.workload, context.goal.hardware,
                                          [(sources[point], bucket.shapes) for point in unknown])
            for point, problem in zip(unknown, told, strict=True):
                self._problems[name, sources[point]] = problem
        return next((point for point in waiting if not self._problems[name, sources[point]]), None)


def hypotheses_of(context: AgentContext, axes: Axes) -> tuple[Hypothesis, ...]:
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


def _fresh(context: AgentContext, chosen: Mapping[str, Point]) -> str | None:
    """The kernel with these points, or ``None`` where that kernel was tried."""
    source = together(context.spec, context.incumbent.source, chosen)
    return None if normal_digest(source) in context.tried else source


def _summary(chosen: Mapping[str, Point]) -> str:
    """``BLOCK=64, num_warps=8`` where all buckets agree, else bucket by bucket."""
    words = {name: ", ".join(f"{key}={value}" for key, value in point) for name, point in chosen.items()}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{name}: {text}" for name, text in words.items())


def _hypothesis_for(stated: tuple[Hypothesis, ...], chosen: Mapping[str, Point], buckets: Mapping[str, BucketHistory]
                    ) -> Hypothesis:
    changes = {(key, value, start) for name, point in chosen.items()
               for (key, value), (_, start) in zip(point, buckets[name].start, strict=True) if value != start}
    name = "combined"
    if len(changes) == 1:
        key, value, start = next(iter(changes))
        if isinstance(value, int) and isinstance(start, int):
            name = f"{key.lower()}-{'larger' if value > start else 'smaller'}"
    known = {hypothesis.id: hypothesis for hypothesis in stated}
    return known.get(name) or known.get("combined") or stated[-1]


__all__ = ["Autotune", "Planner", "hypotheses_of"]
