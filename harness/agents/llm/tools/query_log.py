"""``query_log``: the experiment log as it was measured."""

from __future__ import annotations

from typing import Any

from harness.agents.llm.data import quote
from harness.agents.llm.log_text import log_rows, standing
from harness.agents.llm.tools.tool import Tool, ToolResult, strict
from harness.agents.llm.tools.workbench import Workbench

BUDGET = 6000
"""Tokens of one answer."""


def _run(bench: Workbench, arguments: dict[str, Any]) -> ToolResult:
    context, direction = bench.context, arguments["direction"]
    entries = context.log.query(direction=direction)
    bench.log_read = True
    head = "The whole log" if direction is None else f"The log of direction {direction}"
    if entries:
        rows = log_rows(entries, BUDGET)
        body = (f"{head}, {len(entries)} rounds, newest last. What was measured is the evaluator's, hypotheses and "
                f"changes are an agent's words:\n{quote('experiment log', rows, len(rows) + 1)}")
    elif direction is None:
        body = "The log is empty: only the baseline (round 0) was measured."
    else:
        known = sorted({entry.direction for entry in context.log.entries})
        body = f"{head} is empty. Directions in the log: {', '.join(known) or 'none yet'}."
    return ToolResult(f"{body}\n\n{standing(context)}")


QUERY_LOG = Tool(
    "query_log",
    "Read the experiment log: what was tried, what was measured, what is closed. Required before any proposal.",
    strict({"direction": {"type": ["string", "null"], "description":
                          "a direction key as in the log, for instance tiling:_kernel; null for the whole log"}}),
    _run,
)
