"""The stages ``plan`` and ``resources`` of a Triton evaluation; neither needs a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.backends.triton import planning
from harness.backends.triton.compiler.compiled import CompileFailed, compile_plans
from harness.backends.triton.compiler.process import compiler_for
from harness.backends.triton.derive import matching
from harness.backends.triton.limits import exceeded
from harness.backends.triton.targets import Target, find_target
from harness.domain.plan import LaunchPlan, Refusal
from harness.domain.verdict import Reason, Resources
from harness.domain.vocabulary import Backend, Outcome, Purpose, Stage
from harness.evaluation.run import Refused, Run
from harness.operators.base import ShapePoint

SHAPES_PER_ROUND = 4
OUTCOME_OF_REFUSAL = {"view_out_of_bounds": Outcome.OUT_OF_BOUNDS, "fill_pattern": Outcome.UNSUPPORTED,
                      "strided_fill": Outcome.UNSUPPORTED, "argument_type": Outcome.UNSUPPORTED,
                      "plan_too_large": Outcome.UNSUPPORTED,
                      "grid_size": Outcome.RESOURCE_INFEASIBLE, "grid_type": Outcome.RUNTIME_ERROR,
                      "nothing_launched": Outcome.INCORRECT_NUMERIC, "allocator": Outcome.RUNTIME_ERROR}
"""Refusals that are no breach of the rules; all others are ``policy_violation``."""
OUTCOME_OF_PROBLEM = {"refused": Outcome.POLICY_VIOLATION, "error": Outcome.COMPILE_ERROR,
                      "infeasible": Outcome.RESOURCE_INFEASIBLE,
                      "crash": Outcome.COMPILE_ERROR, "timeout": Outcome.TIMEOUT, "forged": Outcome.REWARD_HACK}


def plan(run: Run) -> None:
    """Import the candidate in the sandbox, record its launches, derive their IR again from the file, compile it in a
    clean process.

    Fills ``run.plans`` and ``run.compiled``.

    Raises:
        Refused: a construct that a plan cannot hold, or a kernel that does not compile.
        CandidateFault: the candidate raised, crashed or was late.
    """
    target = find_target(run.target)
    points = planned_shapes(run)
    run.progress(Stage.PLAN, 0, len(points) + 1, "importing the candidate")
    # ``load`` and every call count against what is left of the evaluation.
    worker: Any = run.open_workers("triton-plan").open(
        deadline_s=max(1.0, min(60.0, run.remaining_s)), options={"target": target.name})
    try:
        run.plans = planning.record_plans(
            worker, run.source, run.spec.arguments, points, run.workload.dtypes[Backend.TRITON], target,
            {attribute.name: attribute.default for attribute in run.spec.attributes},
            progress=lambda done, text: run.progress(Stage.PLAN, done, len(points) + 1, text))
    except planning.PlanForged as forged:
        text = f"The recorded plan was tampered with: {forged}. Only launch kernel functions of your own."
        raise Refused(Outcome.REWARD_HACK, Reason(code="plan_forged", stage=Stage.PLAN, text=text)) from forged
    finally:
        worker.close()
    _refuse_recorded(run.plans)
    run.progress(Stage.PLAN, len(points), len(points) + 1, "compiling the recorded kernel functions")
    derive(run, run.plans)
    _compile(run, target)


def planned_shapes(run: Run) -> Sequence[ShapePoint]:
    """The shapes to record: all of them, in a round at most the heaviest four."""
    points = run.workload.shapes[Backend.TRITON]
    if run.request.purpose is Purpose.PROMOTION:
        return points
    return sorted(points, key=lambda point: -point.weight)[:SHAPES_PER_ROUND]


def _refuse_recorded(plans: Sequence[LaunchPlan]) -> None:
    refusals: list[Refusal] = [refusal for recorded in plans for refusal in recorded.refusals]
    if refusals:
        outcome = OUTCOME_OF_REFUSAL.get(refusals[0].code, Outcome.POLICY_VIOLATION)
        raise Refused(outcome, *(Reason(code=r.code, stage=Stage.PLAN, text=r.text, line=r.line) for r in refusals))


def derive(run: Run, plans: Sequence[LaunchPlan]) -> None:
    """Hold the IR of ``plans`` against what the reviewed file's kernel functions give by themselves.

    Raises:
        Refused: ``reward_hack`` with code ``ir_foreign`` where they differ.
        CandidateFault: the deriving process crashed or was late.
    """
    workers = run.open_workers("triton-derive")
    try:
        matching.prove(workers, run.source, plans, find_target(run.target),
                       deadline_s=max(1.0, min(60.0, run.remaining_s)))
    except matching.IrForeign as foreign:
        text = f"The code of '{foreign.function}' does not follow from the reviewed file: {foreign.text}."
        reason = Reason(code="ir_foreign", stage=run.stage, text=text,
                        line=matching.line_of(run.source, foreign.function))
        raise Refused(Outcome.REWARD_HACK, reason) from foreign


def _compile(run: Run, target: Target) -> None:
    try:
        run.compiled = compile_plans(run.plans, compiler_for(target), deadline_s=max(1.0, min(60.0, run.remaining_s)))
    except CompileFailed as failed:
        if failed.problem == "refused":
            text = f"Kernel function '{failed.function}' cannot be planned: {failed.text}."
            code = "ir_refused"
        elif failed.problem == "forged":
            text = f"The launch of '{failed.function}' was tampered with: {failed.text}."
            code = "plan_forged"
        else:
            text = f"Kernel function '{failed.function}' does not compile for {target.title}: {failed.text}"
            code = f"compile_{failed.problem}"
        raise Refused(OUTCOME_OF_PROBLEM[failed.problem], Reason(code=code, stage=Stage.PLAN, text=text)) from failed


def resources(run: Run) -> None:
    """Hold the compiled launches against the device and the goal's limits; fills ``run.resources``.

    Raises:
        Refused: ``resource_infeasible`` where the device cannot run a launch, ``over_limit`` where the goal forbids it.
    """
    target = find_target(run.target)
    launches = tuple(launch for compiled in run.compiled for launch in compiled.launches)
    largest = max(run.plans, key=lambda recorded: sum(buffer.bytes for buffer in recorded.buffers), default=None)
    run.resources = Resources(
        launches=launches, scratch_bytes=max(map(planning.scratch_bytes, run.plans), default=0),
        peak_bytes=sum(buffer.bytes for buffer in largest.buffers) if largest else 0,
        argument_bytes=planning.argument_bytes(largest) if largest else 0,
        occupancy=min((launch.occupancy for launch in launches if launch.occupancy is not None), default=None))
    impossible, forbidden = exceeded(launches, run.plans, run.request.goal.limits, target)
    if impossible:
        raise Refused(Outcome.RESOURCE_INFEASIBLE, *impossible)
    if forbidden:
        raise Refused(Outcome.OVER_LIMIT, *forbidden)
