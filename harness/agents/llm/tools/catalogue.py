"""All tools by name, and calling one by the text of its arguments."""

from __future__ import annotations

from typing import Any

from harness.agents.llm.tools.arguments import arguments_of
from harness.agents.llm.tools.check_feasibility import CHECK_FEASIBILITY
from harness.agents.llm.tools.give_up import GIVE_UP
from harness.agents.llm.tools.query_log import QUERY_LOG
from harness.agents.llm.tools.read_profile import READ_PROFILE
from harness.agents.llm.tools.read_source import READ_SOURCE
from harness.agents.llm.tools.read_verdict import READ_VERDICT
from harness.agents.llm.tools.state_hypotheses import STATE_HYPOTHESES
from harness.agents.llm.tools.submit_candidate import SUBMIT_CANDIDATE
from harness.agents.llm.tools.tool import Refused, Tool, ToolResult
from harness.agents.llm.tools.workbench import Workbench
from harness.domain.words import one_line

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (
    QUERY_LOG, READ_SOURCE, READ_PROFILE, READ_VERDICT, CHECK_FEASIBILITY, STATE_HYPOTHESES, SUBMIT_CANDIDATE, GIVE_UP,
)}


def call(workbench: Workbench, name: str, arguments_text: str) -> ToolResult:
    """Run one tool. An unknown name or wrong arguments run nothing and come back as an error that says what to send."""
    tool = TOOLS.get(name)
    if tool is None:
        return ToolResult(f"There is no tool '{one_line(name, 60)}'. Tools: {', '.join(TOOLS)}. Nothing was run.",
                          is_error=True)
    try:
        return tool.run(workbench, arguments_of(tool, arguments_text))
    except Refused as refused:
        return ToolResult(str(refused), is_error=True)


def functions() -> list[dict[str, Any]]:
    """The tools in the chat-completions form."""
    return [{"type": "function", "function": {"name": tool.name, "description": tool.description,
                                              "parameters": dict(tool.schema)}} for tool in TOOLS.values()]
