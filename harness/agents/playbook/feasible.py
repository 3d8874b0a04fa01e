"""Whether a kernel's PARAMS can run at all: what arithmetic refuses is never proposed, a round would be lost on it."""

from __future__ import annotations

from harness.agents.autotune.space import infeasible
from harness.agents.playbook import edit
from harness.agents.protocol import AgentContext
from harness.backends.triton.targets import TARGETS


def impossible(context: AgentContext, source: str) -> str:
    """Why the evaluator's arithmetic would refuse ``source`` for some shape of the workload, with the sum; empty where
    it would not. Where the hardware is no known GPU, the one that kernels are compiled for by default counts."""
    goal, workload = context.goal, context.spec.workloads[context.goal.workload]
    hardware = goal.hardware if goal.hardware in TARGETS else None
    return infeasible(context.spec, goal.backend, (), workload.shapes[goal.backend], hardware,
                      workload.dtypes[goal.backend], edit.params(source))
