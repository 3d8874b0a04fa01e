"""Compiled launches against what the device can hold and what the goal allows, with the sum shown."""

from __future__ import annotations

from collections.abc import Sequence

from harness.backends.triton.planning import argument_bytes, scratch_bytes
from harness.backends.triton.targets import Target
from harness.domain.goal import Limits
from harness.domain.plan import LaunchPlan, LaunchResources
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Stage


def exceeded(
    launches: Sequence[LaunchResources], plans: Sequence[LaunchPlan], limits: Limits, target: Target
) -> tuple[list[Reason], list[Reason]]:
    """What the device cannot hold, and what the goal forbids; each launch function at its worst."""
    impossible: dict[str, Reason] = {}
    forbidden: dict[str, Reason] = {}
    for launch in sorted(launches, key=lambda row: -(row.shared_bytes or 0)):
        _device(launch, target, impossible)
        _goal(launch, limits, forbidden)
    for plan in plans:
        _scratch(plan, limits, target, impossible, forbidden)
    return list(impossible.values()), list(forbidden.values())


def _device(launch: LaunchResources, target: Target, found: dict[str, Reason]) -> None:
    registers, shared, threads = launch.registers or 0, launch.shared_bytes or 0, launch.num_warps * target.warp
    if shared > target.shared_optin:
        _add(found, "shared_infeasible", f"'{launch.function}' needs {shared:,} bytes of shared memory per block; "
             f"{target.title} has {target.shared_optin:,}. Use smaller tiles or fewer stages.")
    per_warp = -(-registers * target.warp // target.register_unit) * target.register_unit
    if per_warp * launch.num_warps > target.registers_per_sm:
        _add(found, "registers_infeasible", f"'{launch.function}' needs {per_warp * launch.num_warps:,} registers per block "
             f"({launch.num_warps} warps x {per_warp:,}); {target.title} has {target.registers_per_sm:,}. Use fewer warps or "
             "smaller tiles.")
    if threads > target.threads_per_block:
        _add(found, "threads_infeasible", f"'{launch.function}' runs {threads:,} threads per block; {target.title} allows "
             f"{target.threads_per_block:,}. Use at most {target.threads_per_block // target.warp} warps.")


def _goal(launch: LaunchResources, limits: Limits, found: dict[str, Reason]) -> None:
    for code, got, limit, what, cure in (
        ("registers_over_limit", launch.registers, limits.registers, "registers per thread", "smaller tiles or more warps"),
        ("spills_over_limit", launch.spill_bytes, limits.spill_bytes, "bytes of register spills",
         "smaller tiles, more warps or a higher maxnreg"),
        ("shared_over_limit", launch.shared_bytes, limits.shared_bytes, "bytes of shared memory",
         "smaller tiles or fewer stages"),
    ):
        if limit is not None and got is not None and got > limit:
            _add(found, code, f"'{launch.function}' uses {got:,} {what}; the goal allows {limit:,}. Use {cure}.")


def _scratch(plan: LaunchPlan, limits: Limits, target: Target, impossible: dict[str, Reason],
             forbidden: dict[str, Reason]) -> None:
    scratch, arguments = scratch_bytes(plan), argument_bytes(plan)
    if scratch + arguments > target.memory_bytes:
        _add(impossible, "memory_infeasible", f"A call needs {scratch + arguments:,} bytes of device memory ({arguments:,} of "
             f"arguments + {scratch:,} of scratch); {target.title} has {target.memory_bytes:,}.")
    if limits.scratch_ratio is not None and scratch > limits.scratch_ratio * arguments:
        _add(forbidden, "scratch_over_limit", f"A call allocates {scratch:,} bytes of scratch, {scratch / arguments:.2f} times "
             f"its {arguments:,} bytes of arguments; the goal allows {limits.scratch_ratio:g} times. Use less scratch.")


def _add(found: dict[str, Reason], code: str, text: str) -> None:
    function = text.split(" ", 1)[0]
    found.setdefault(f"{code} {function}", Reason(code=code, stage=Stage.RESOURCES, text=text))
