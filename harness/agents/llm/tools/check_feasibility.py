"""``check_feasibility``: whether a block with these PARAMS can run at all, with the sum shown (R18). Nothing is
compiled and nothing is measured: it is arithmetic over what the operator declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.agents.llm.tools.tool import Refused, Tool, ToolResult, strict
from harness.agents.llm.tools.workbench import Workbench
from harness.agents.protocol import AgentContext
from harness.domain.errors import SourceError, UsageError
from harness.domain.vocabulary import Backend
from harness.evaluation.arithmetic import Feasibility, check_feasibility
from harness.evaluation.source.params import problems, read_params

DRY_TARGET = "nvidia-h200"
"""The device whose limits a campaign on the interpreter is held against."""


def _run(bench: Workbench, arguments: dict[str, Any]) -> ToolResult:
    context = bench.context
    try:
        params = read_params("PARAMS = " + arguments["params"].strip().removeprefix("PARAMS").lstrip(" ="))
    except SourceError as error:
        raise Refused(f"'params' is not a literal dict: {error.text}") from None
    lines = [f"Not as declared: {problem.text}" for problem in problems(params, context.spec, context.goal.backend)]
    if lines:
        lines.append("A candidate with such PARAMS is a heavy change.")
    sums = sums_of(context, params)
    lines += [f"- {label}: {'feasible' if one.feasible else 'IMPOSSIBLE'}. {one.text}" for label, one in sums]
    if any(not one.feasible for _, one in sums):
        lines.append("A candidate with these PARAMS would be refused before it is compiled.")
    return ToolResult("\n".join(lines))


def sums_of(context: AgentContext, params: Mapping[str, Any]) -> list[tuple[str, Feasibility]]:
    """The sum of every shape of the workload."""
    backend, workload = context.goal.backend, context.spec.workloads[context.goal.workload]
    hardware = context.goal.hardware if context.goal.hardware.startswith("nvidia-") else DRY_TARGET
    dtype = workload.dtypes[backend]
    made = []
    for point in workload.shapes[backend]:
        try:
            one = check_feasibility(context.spec, backend, params, point.dims, hardware, dtype=dtype)
        except UsageError as error:
            one = Feasibility(True, f"Cannot be computed here: {error.text}")
        made.append((point.label, one))
        if backend is not Backend.TRITON:
            break  # nothing is allotted per block: one sentence says it for all shapes
    return made


CHECK_FEASIBILITY = Tool(
    "check_feasibility",
    "Check PARAMS by arithmetic before proposing: threads, registers and shared memory of a block, with the sum shown.",
    strict({"params": {"type": "string", "minLength": 2, "maxLength": 4000, "description":
                       'the PARAMS dict as it would stand in the source, such as {"BLOCK": 1024, "num_warps": 8}'}}),
    _run,
)
