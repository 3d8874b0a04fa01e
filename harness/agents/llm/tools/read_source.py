"""``read_source``: a kernel of this campaign, whole."""

from __future__ import annotations

from typing import Any

from harness.agents.llm.data import source_block
from harness.agents.llm.tools.tool import Refused, Tool, ToolResult, strict
from harness.agents.llm.tools.workbench import Workbench
from harness.domain.request import SourceRef


def _run(bench: Workbench, arguments: dict[str, Any]) -> ToolResult:
    which, number = arguments["which"], arguments["round"]
    if (which == "round") != (number is not None):
        raise Refused("'round' is the number of a round where 'which' is round, and null otherwise. Send both so.")
    context = bench.context
    if which == "baseline" or number == 0:
        return _shown("baseline (round 0)", context.baseline)
    if which == "incumbent":
        return _shown(f"incumbent (round {context.incumbent_round})", context.incumbent)
    attempts = {attempt.round: attempt for attempt in context.attempts}
    attempt = attempts.get(number)
    if attempt is None:
        raise Refused(f"Round {number} has no kernel. Rounds with one: 0"
                      + "".join(f", {known}" for known in attempts) + ".")
    return _shown(f"round {number} ({attempt.verdict.outcome})", attempt.kernel)


def _shown(title: str, kernel: SourceRef) -> ToolResult:
    return ToolResult(f"Kernel {kernel.digest.removeprefix('sha256:')[:12]}, {kernel.source.count(chr(10))} lines:\n"
                      + source_block(title, kernel.source))


READ_SOURCE = Tool(
    "read_source", "Read the whole source of the baseline, of the incumbent, or of the kernel tried in a round.",
    strict({
        "which": {"type": "string", "enum": ["baseline", "incumbent", "round"], "description": "which kernel"},
        "round": {"type": ["integer", "null"], "description": "its round where which is round, else null"},
    }),
    _run,
)
