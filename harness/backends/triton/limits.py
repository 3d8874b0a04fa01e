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
    registers, shared = launch.registers or 0, launch.shared_bytes or 0
    threads = launch.num_warps * target.warp
    per_warp = -(-registers * target.warp // target.register_unit) * target.register_unit
    per_block = per_warp * launch.num_warps
    if shared > target.shared_optin:
        _add(found, "shared_infeasible", launch.function,
             f"needs {shared:,} bytes of shared memory per block; {target.title} has {target.shared_optin:,}. "
             "Use smaller tiles or fewer stages.")
    if per_block > target.registers_per_sm:
        _add(found, "registers_infeasible", launch.function,
             f"needs {per_block:,} registers per block ({launch.num_warps} warps x {per_warp:,}); {target.title} has "
             f"{target.registers_per_sm:,}. Use fewer warps or smaller tiles.")
    if launch.num_ctas > target.ctas_per_cluster:
        _add(found, "cluster_infeasible", launch.function,
             f"runs clusters of {launch.num_ctas} blocks; {target.title} allows {target.ctas_per_cluster}. Use a "
             "smaller num_ctas.")
    if threads > target.threads_per_block:
        _add(found, "threads_infeasible", launch.function,
             f"runs {threads:,} threads per block; {target.title} allows {target.threads_per_block:,}. Use at most "
             f"{target.threads_per_block // target.warp} warps.")


def _goal(launch: LaunchResources, limits: Limits, found: dict[str, Reason]) -> None:
    for code, got, limit, what, cure in (
        ("registers_over_limit", launch.registers, limits.registers, "registers per thread",
         "smaller tiles or more warps"),
        ("spills_over_limit", launch.spill_bytes, limits.spill_bytes, "bytes of register spills",
         "smaller tiles, more warps or a higher maxnreg"),
        ("shared_over_limit", launch.shared_bytes, limits.shared_bytes, "bytes of shared memory",
         "smaller tiles or fewer stages"),
    ):
        if limit is not None and got is not None and got > limit:
            _add(found, code, launch.function, f"uses {got:,} {what}; the goal allows {limit:,}. Use {cure}.")


def _scratch(plan: LaunchPlan, limits: Limits, target: Target, impossible: dict[str, Reason],
             forbidden: dict[str, Reason]) -> None:
    scratch, arguments = scratch_bytes(plan), argument_bytes(plan)
    if scratch + arguments > target.memory_bytes:
        _add(impossible, "memory_infeasible", "run",
             f"needs {scratch + arguments:,} bytes of device memory ({arguments:,} of arguments + {scratch:,} of "
             f"scratch); {target.title} has {target.memory_bytes:,}. Use less scratch.")
    if limits.scratch_ratio is not None and scratch > limits.scratch_ratio * arguments:
        _add(forbidden, "scratch_over_limit", "run",
             f"allocates {scratch:,} bytes of scratch, {scratch / max(1, arguments):.2f} times its {arguments:,} bytes "
             f"of arguments; the goal allows {limits.scratch_ratio:g} times. Use less scratch.")


def _add(found: dict[str, Reason], code: str, function: str, text: str) -> None:
    found.setdefault(f"{code} {function}", Reason(code=code, stage=Stage.RESOURCES, text=f"'{function}' {text}"))
