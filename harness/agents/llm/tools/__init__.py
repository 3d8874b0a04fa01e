"""What a model may do: eight tools over the context of one asking. They read, note and propose; none of them runs code,
measures, or changes a tier, a verdict or an approval."""

from harness.agents.llm.tools.catalogue import TOOLS, call, functions
from harness.agents.llm.tools.tool import Tool, ToolResult
from harness.agents.llm.tools.workbench import Workbench

__all__ = ["TOOLS", "Tool", "ToolResult", "Workbench", "call", "functions"]
