"""Compiles what a round-by-round search proposes, before a round is spent on it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.agents.autotune.agent import Planner
from harness.agents.autotune.space import bucket_of, point_of
from harness.backends.triton.targets import find_target
from harness.domain.goal import Goal, Limits
from harness.domain.vocabulary import Backend
from harness.operators.base import OperatorSpec, ShapePoint
from harness.search.configs import Config, space_of
from harness.search.farm import Farm


class FarmPlanner:
    """Implements ``agents.autotune.agent.Planner`` by a farm: in parallel, without a device."""

    def __init__(self, limits: Limits | None = None) -> None:
        """``limits`` are the goal's."""
        self._limits = limits

    def problems(self, spec: OperatorSpec, workload: str, hardware: str,
                 asked: Sequence[tuple[str, tuple[ShapePoint, ...]]]) -> list[str]:
        """See ``Planner``. All sources are one kernel that differs in PARAMS alone, meant for one bucket."""
        from harness.evaluation import sandbox

        if not asked:
            return []
        source, shapes = asked[0]
        space, bucket = space_of(spec, workload, source), bucket_of(spec, shapes[0])
        points = [point_of(spec, text, space.axes, shapes) for text, shapes in asked]
        farm = Farm(space, find_target(hardware), sandbox.opener("triton-plan"), limits=self._limits,
                    batch=max(1, len(points) // 4))
        found = {one.config: f"{one.problem}: {one.text}" if one.problem else ""
                 for batch in farm.build(list(dict.fromkeys(points)), [bucket]) for one in batch}
        return [found[Config(bucket, point)] for point in points]


def planner_for(goal: Goal) -> Planner | None:
    """The planner of a campaign, ``None`` where its agent does not search or its kernels have no plans."""
    if goal.agent.kind != "autotune" or goal.backend is not Backend.TRITON:
        return None
    return FarmPlanner(goal.limits)
