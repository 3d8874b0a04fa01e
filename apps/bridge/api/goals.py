"""The goal document: checked, made canonical, and said in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.bridge.api.errors import BridgeError, translated


@dataclass(frozen=True, slots=True)
class GoalFacts:
    """A valid goal: its canonical document, digest, and the sentences a person confirms (R13)."""

    document: dict[str, Any]
    digest: str
    sentences: tuple[str, ...]


def goal_check(document: Any) -> GoalFacts:
    """Check a goal against the schema, itself and its operator.

    Raises:
        BridgeError: the first contradiction, with ``key`` naming the value to change.
    """
    with translated():
        from harness.domain.codec import to_document
        from harness.domain.goal import goal_from_document

        goal = goal_from_document(document)
        _check_operator(goal)
        return GoalFacts(to_document(goal), goal.digest, tuple(_sentences(goal)))


def goal_default(operator: str, backend: str, hardware: str, workload: str) -> dict[str, Any]:
    """A goal document with every default filled in, to start a form from."""
    with translated():
        from harness.domain.codec import to_document
        from harness.domain.goal import Goal
        from harness.domain.vocabulary import Backend

        return to_document(Goal(operator=operator, backend=Backend(backend), hardware=hardware, workload=workload))


def _check_operator(goal: Any) -> None:
    from harness.operators.registry import get

    spec = get(goal.operator)
    workload = spec.workloads.get(goal.workload)
    if workload is None:
        raise BridgeError(f"{goal.operator} has no workload '{goal.workload}'. Known: {', '.join(spec.workloads)}.",
                          code="goal_invalid", key="workload")
    if goal.backend not in workload.shapes:
        known = ", ".join(str(backend) for backend in workload.shapes)
        raise BridgeError(f"Workload {goal.workload} of {goal.operator} is not measured on {goal.backend}. It is on: "
                          f"{known}.", code="goal_invalid", key="backend")
    for key, (low, high) in goal.adjustable.items():
        tunable = spec.tunable(key, goal.backend)
        if tunable is None:
            known = ", ".join(t.key for t in spec.tunables if goal.backend in t.backends) or "none"
            raise BridgeError(f"adjustable.{key} is no tunable of {goal.operator} on {goal.backend}. Known: {known}.",
                              code="goal_invalid", key=f"adjustable.{key}")
        if tunable.choices:
            continue
        if low < tunable.low or high > tunable.high:
            raise BridgeError(f"adjustable.{key} is {low} to {high}, outside the declared {tunable.low} to "
                              f"{tunable.high}. It may only narrow.", code="goal_invalid", key=f"adjustable.{key}")
    override = goal.limits.tolerance
    dtype = workload.dtypes.get(goal.backend)
    policy = spec.tolerances.get(dtype) if dtype else None
    if override is not None and policy is not None and override.relative > policy.cap:
        raise BridgeError(f"limits.tolerance.relative is {override.relative:g}; for {dtype} {goal.operator} allows at "
                          f"most {policy.cap:g}: {policy.reason}", code="goal_invalid", key="limits.tolerance.relative")


GRANTS = {
    "light": "The agent may change values of declared parameters only. One approval, or none where the team turned "
             "automatic light promotion on.",
    "medium": "The agent may change parameters and the bodies of existing kernel functions. One reviewer must approve.",
    "heavy": "The agent may change anything the static rules allow, kernels and structure included. Two reviewers "
             "must approve.",
}


def _sentences(goal: Any) -> list[str]:
    from harness.domain.words import counted

    weights, limits, budget, stop = goal.objective.weights, goal.limits, goal.budget, goal.stop
    shares = [f"{round(100 * value)} % {name}" for name, value in (
        ("latency", weights.latency), ("throughput", weights.throughput), ("stability", weights.stability),
        ("cold start", weights.cold_start)) if value]
    lines = [
        f"Make {goal.operator} faster on {goal.hardware} with {goal.backend}, measured on workload {goal.workload}.",
        f"The score weighs {', '.join(shares)}; being right and staying within limits is never traded.",
        GRANTS[str(goal.grant)],
    ]
    on_gpu = goal.backend == "triton"  # a CPU kernel has no such registers, spills and blocks
    bounds = [text for value, text in (
        (limits.scratch_ratio, f"scratch memory at most {limits.scratch_ratio} times the inputs and outputs"),
        (limits.registers if on_gpu else None, f"at most {limits.registers} registers per thread"),
        (limits.spill_bytes if on_gpu else None, f"at most {limits.spill_bytes} bytes spilled"),
        (limits.shared_bytes if on_gpu else None, f"at most {limits.shared_bytes} bytes of shared memory per block"),
        (limits.cv, f"times that vary by at most {100 * limits.cv:g} %" if limits.cv is not None else ""),
        (limits.throughput_floor, f"at least {limits.throughput_floor} GB/s"),
    ) if value is not None]
    lines.append("Hard limits: " + ("; ".join(bounds) if bounds else "only the device's own") + ".")
    if limits.tolerance is not None:
        lines.append(f"The error bound is overridden to {limits.tolerance.relative:g} relative, because: "
                     f"{limits.tolerance.reason}. Reviewers see this.")
    if goal.adjustable:
        lines.append("Parameters are narrowed: " + ", ".join(
            f"{key} {low} to {high}" for key, (low, high) in goal.adjustable.items()) + ".")
    lines.append(f"Not allowed: {', '.join(goal.prohibited)}.")
    spent = [text for value, text in (
        (budget.rounds, counted(budget.rounds or 0, "round")),
        (budget.evaluations, counted(budget.evaluations or 0, "evaluation")),
        (budget.seconds, f"{(budget.seconds or 0) / 60:g} minutes"), (budget.tokens, f"{budget.tokens} tokens"),
        (budget.turns, f"{counted(budget.turns or 0, 'turn')} of the model"),
        (budget.money, f"{budget.money or 0:g} of the money that its endpoint is priced in"),
    ) if value is not None]
    lines.append(f"The agent is {goal.agent.kind}; it may spend {', '.join(spent)}, whichever ends first.")
    if budget.at_limit == "ask":
        lines.append("When the budget is spent it asks whether to raise it, and holds no device while it waits.")
    lines.append(f"It waits for you after {counted(stop.plateau_rounds, 'conclusive round')} without a gain of "
                 f"{100 * stop.plateau_gain:g} %, or at {100 * stop.roof_share:g} % of the measured roof.")
    if stop.pause_after_diagnosis:
        lines.append("It pauses after the diagnosis, so that you can strike or edit hypotheses.")
    return lines
