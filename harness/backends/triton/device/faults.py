"""What a refused or failed plan means for its candidate. Pure."""

from __future__ import annotations

from harness.backends.triton.compiler.compiled import CompileFailed
from harness.backends.triton.launcher.client import DeviceFault, PlanRefused
from harness.backends.triton.stages import OUTCOME_OF_PROBLEM, OUTCOME_OF_REFUSAL
from harness.domain.errors import InfrastructureError
from harness.domain.plan import LaunchPlan
from harness.domain.vocabulary import Outcome
from harness.evaluation.ports import Fault

OUTCOME_OF_LAUNCHER = {"unsupported": Outcome.UNSUPPORTED, "shared": Outcome.RESOURCE_INFEASIBLE,
                       "forged": Outcome.REWARD_HACK, "arguments": Outcome.REWARD_HACK}
"""A launcher's refusals of a plan that are the candidate's doing; any other is a fault of the evaluator."""
CODE_OF_LAUNCHER = {"unsupported": "unsupported", "shared": "shared_infeasible", "forged": "plan_forged",
                    "arguments": "plan_forged"}
OUTCOME_OF_FAULT = {"illegal_address": Outcome.OUT_OF_BOUNDS, "misaligned_address": Outcome.RUNTIME_ERROR,
                    "launch_failed": Outcome.RUNTIME_ERROR, "too_large": Outcome.RESOURCE_INFEASIBLE,
                    "timeout": Outcome.TIMEOUT}
CODE_OF_FAULT = {"too_large": "grid_too_large", "launch_failed": "crash"}
"""Reason codes where they differ from the launcher's own word."""
SENTENCE = {
    "illegal_address": "The kernel read or wrote outside the memory it was given and the device stopped it. Check "
                       "masks, loop bounds and pointer arithmetic.",
    "misaligned_address": "The kernel accessed memory at an address that its access width does not divide. Do not "
                          "promise alignment or divisibility that the arguments lack.",
    "launch_failed": "The kernel failed on the device.",
    "too_large": "A cooperative launch has more programs than the device can hold at once. Use a smaller grid.",
    "timeout": "The kernel did not end in time and was stopped. Look for a loop or a barrier that waits for ever.",
}


def recorded(plan: LaunchPlan) -> Fault | None:
    """The fault of a plan that carries refusals, ``None`` for one that can run."""
    if not plan.refusals:
        return None
    first = plan.refusals[0]
    outcome = OUTCOME_OF_REFUSAL.get(first.code, Outcome.POLICY_VIOLATION)
    return Fault(outcome, first.code, first.text, first.line)


def forged(what: object) -> Fault:
    """A plan that no honest recorder gives."""
    text = f"The recorded plan was tampered with: {what}. Only launch kernel functions of your own."
    return Fault(Outcome.REWARD_HACK, "plan_forged", text)


def uncompiled(failed: CompileFailed) -> Fault:
    """A recorded kernel without a binary."""
    if failed.problem == "refused":
        text = f"Kernel function '{failed.function}' cannot be planned: {failed.text}."
        return Fault(Outcome.POLICY_VIOLATION, "ir_refused", text)
    if failed.problem == "forged":
        text = f"The launch of '{failed.function}' was tampered with: {failed.text}."
        return Fault(Outcome.REWARD_HACK, "plan_forged", text)
    text = f"Kernel function '{failed.function}' does not compile for this device: {failed.text}"
    return Fault(OUTCOME_OF_PROBLEM[failed.problem], f"compile_{failed.problem}", text)


def refused(refusal: PlanRefused) -> Fault:
    """A plan that the launcher will not run.

    Raises:
        InfrastructureError: the refusal says nothing about the candidate.
    """
    outcome = OUTCOME_OF_LAUNCHER.get(refusal.code)
    if outcome is None:
        raise InfrastructureError(f"The launcher refused a plan of the evaluator's own making: {refusal.text}")
    text = f"The recorded launches cannot run on this device: {refusal.text}"
    return Fault(outcome, CODE_OF_LAUNCHER[refusal.code], text)


def failed(fault: DeviceFault) -> Fault:
    """A kernel that failed on the device.

    Raises:
        InfrastructureError: memory or the launcher itself gave out, which no kernel can be blamed for.
    """
    outcome = OUTCOME_OF_FAULT.get(fault.code)
    if outcome is None:
        raise InfrastructureError(f"The launcher failed ({fault.code}): {fault.text} The candidate is not charged.")
    text = f"{SENTENCE[fault.code]} The driver says: {fault.text}"
    return Fault(outcome, CODE_OF_FAULT.get(fault.code, fault.code), text)


def written(names: tuple[str, ...]) -> Fault:
    """Inputs that a call changed."""
    listed = ", ".join(f"'{name}'" for name in names)
    text = f"The kernel wrote to its input {listed}. Inputs are read-only; write to outputs or scratch."
    return Fault(Outcome.POLICY_VIOLATION, "input_written", text)
