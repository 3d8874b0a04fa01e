"""Starting a campaign from its goal."""

from __future__ import annotations

from harness.domain.digest import digest_source
from harness.domain.errors import GoalError
from harness.domain.goal import Goal, check_goal
from harness.domain.request import SourceRef
from harness.engine.state import CampaignState
from harness.evaluation.source.normal_form import normal_digest
from harness.operators import registry
from harness.operators.base import OperatorSpec


def start_state(goal: Goal, *, attended: bool = True, baseline: str | None = None) -> CampaignState:
    """A fresh campaign on the operator's shipped baseline, or on ``baseline`` (the source of a fork's kernel).

    Raises:
        UsageError: no such operator.
        GoalError: the goal contradicts itself or the operator; ``key`` names the value.
    """
    spec = check_against_operator(goal)
    source = spec.baseline(goal.backend) if baseline is None else baseline
    return CampaignState.start(goal, SourceRef(digest_source(source), source), normal_digest(source), spec.version,
                               attended=attended)


def check_against_operator(goal: Goal) -> OperatorSpec:
    """Refuse a goal that contradicts itself or what its operator declares; returns the operator.

    Raises:
        UsageError: no such operator.
        GoalError: ``key`` names the value to change.
    """
    check_goal(goal)
    spec = registry.get(goal.operator)
    workload = spec.workloads.get(goal.workload)
    if workload is None or goal.backend not in workload.shapes:
        known = ", ".join(name for name, w in spec.workloads.items() if goal.backend in w.shapes) or "none"
        raise GoalError(f"{spec.name} has no workload '{goal.workload}' on {goal.backend}. Known: {known}.",
                        key="workload")
    for key, (low, high) in goal.adjustable.items():
        tunable = spec.tunable(key, goal.backend)
        if tunable is None:
            declared = ", ".join(t.key for t in spec.tunables if goal.backend in t.backends) or "none"
            raise GoalError(f"adjustable.{key}: {spec.name} declares no such tunable on {goal.backend}. Declared: "
                            f"{declared}.", key=f"adjustable.{key}")
        if not tunable.choices and (high < tunable.low or low > tunable.high):
            raise GoalError(f"adjustable.{key}: {low} to {high} lies outside the declared {tunable.low} to "
                            f"{tunable.high}.", key=f"adjustable.{key}")
    return spec
