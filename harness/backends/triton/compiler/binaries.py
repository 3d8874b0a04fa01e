"""The binaries of a plan's launches, as a launcher needs them; equal kernels are compiled once per process."""

from __future__ import annotations

from harness.backends.triton.compiler.compiled import check_dependence, check_facts
from harness.backends.triton.compiler.process import CompilerProcess, KernelSource
from harness.backends.triton.launcher.binary import Binary
from harness.domain.plan import LaunchPlan


def binaries_of(
    plans: list[LaunchPlan], compiler: CompilerProcess, *, deadline_s: float = 60.0
) -> list[tuple[Binary, ...]]:
    """One binary per launch step of each plan, in order.

    Raises:
        CompileFailed: the first kernel that is refused, does not compile or takes other arguments.
        InfrastructureError: the compile process does not start.
    """
    launches = [[step["launch"] for step in plan.steps if "launch" in step] for plan in plans]
    sources = [
        KernelSource((plan.irs or {})[launch["ir"]], launch["kind"], dict(launch["options"]))
        for plan, steps in zip(plans, launches, strict=True)
        for launch in steps
    ]
    facts = iter(compiler.compile(sources, deadline_s=deadline_s))
    result = []
    for plan, steps in zip(plans, launches, strict=True):
        own = [next(facts) for _ in steps]
        check_dependence(plan, own)
        row = []
        for launch, found in zip(steps, own, strict=True):
            check_facts(plan, launch, found)
            row.append(Binary(found.symbol, found.cubin, found.num_warps, found.num_ctas, found.shared_bytes))
        result.append(tuple(row))
    return result
