"""What a campaign has shown about the points of each shape bucket: which were tried, and how much faster they were."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.agents.autotune.space import Axes, Point, buckets_of, point_of
from harness.agents.protocol import AgentContext, Attempt
from harness.domain.summary import VerdictSummary
from harness.domain.vocabulary import Role
from harness.operators.base import ShapePoint


@dataclass
class BucketHistory:
    """One bucket. ``gains`` are ratios over the starting kernel of the points that were timed; ``good`` ran, timed or
    not; ``tried`` need no further round."""

    shapes: tuple[ShapePoint, ...]
    start: Point
    gains: dict[Point, float] = field(default_factory=dict)
    good: set[Point] = field(default_factory=set)
    tried: set[Point] = field(default_factory=set)

    @property
    def best(self) -> Point:
        """The fastest point measured, the start where nothing was faster."""
        best = max(self.gains, key=lambda point: (self.gains[point], str(point)), default=self.start)
        return best if self.gains.get(best, 0.0) > 1.0 else self.start


def history_of(context: AgentContext, axes: Axes) -> dict[str, BucketHistory]:
    """Every measured bucket's history.

    A candidate carries one point for each bucket. Where it failed, a point is to blame only if those of all other
    buckets are known to run.
    """
    spec, backend = context.spec, context.goal.backend
    found = {}
    for name, shapes in buckets_of(spec, backend, context.goal.workload).items():
        start = point_of(spec, context.baseline.source, axes, shapes)
        found[name] = BucketHistory(shapes, start, good={start}, tried={start})
    failed = []
    for attempt in context.attempts:
        points = {name: point_of(spec, attempt.kernel.source, axes, one.shapes) for name, one in found.items()}
        if not attempt.verdict.passed:
            failed.append(points)
            continue
        for name, point in points.items():
            found[name].good.add(point)
            found[name].tried.add(point)
            gain = _gain(context.baseline_verdict, attempt, found[name].shapes)
            if gain is not None:
                found[name].gains[point] = gain
    for points in failed:
        for name, point in points.items():
            if all(points[other] in found[other].good for other in points if other != name):
                found[name].tried.add(point)
    return found


def _gain(baseline: VerdictSummary | None, attempt: Attempt, shapes: Sequence[ShapePoint]) -> float | None:
    """How much faster the bucket's shapes were than in round 0, from the medians of both rounds; the whole kernel's
    ratio where shapes were not told apart."""
    before, now = _medians(baseline), _medians(attempt.verdict)
    known = [shape for shape in shapes if shape.label in before and shape.label in now]
    weight = sum(shape.weight for shape in known)
    if weight:
        logs = (shape.weight * math.log(before[shape.label] / now[shape.label]) for shape in known)
        return math.exp(math.fsum(logs) / weight)
    ratio = attempt.verdict.ratio(Role.BASELINE) or attempt.verdict.ratio(Role.INCUMBENT)
    return ratio.ratio if ratio and attempt.verdict.timed else None


def _medians(verdict: VerdictSummary | None) -> Mapping[str, float]:
    return {shape.shape: shape.median_us for shape in verdict.shapes} if verdict is not None else {}
