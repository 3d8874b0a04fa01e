"""``give_up``: no further idea, with the reason."""

from __future__ import annotations

from typing import Any

from harness.agents.llm.tools.tool import Refused, Tool, ToolResult, strict
from harness.agents.llm.tools.workbench import Workbench
from harness.domain.proposal import Proposal


def _run(bench: Workbench, arguments: dict[str, Any]) -> ToolResult:
    if not bench.log_read:
        raise Refused("Read the experiment log with query_log before you give up.")
    return ToolResult("Noted: the campaign goes to its plateau and a person chooses what follows.",
                      ends=Proposal("give_up", True, reason=arguments["reason"].strip()))


GIVE_UP = Tool(
    "give_up", "End the search: no idea within the grant is worth a round. A person then chooses what follows.",
    strict({"reason": {"type": "string", "minLength": 10, "maxLength": 1000, "description":
                       "why, from the measurements; say if a restructuring or a higher grant would open new ideas"}}),
    _run, ending=True,
)
