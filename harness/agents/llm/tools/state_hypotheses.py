"""``state_hypotheses``: ranked ideas, best first (R14)."""

from __future__ import annotations

from typing import Any

from harness.agents.llm.rules import MOST, idea_problem, list_problem
from harness.agents.llm.tools.tool import Refused, Tool, ToolResult, strict
from harness.agents.llm.tools.workbench import Workbench
from harness.domain.proposal import Hypothesis, Proposal
from harness.domain.vocabulary import Direction


def _run(bench: Workbench, arguments: dict[str, Any]) -> ToolResult:
    context = bench.context
    ideas = tuple(Hypothesis(one["id"], Direction(one["direction"]), one["function"], one["text"], one["evidence"],
                             float(one["expected_gain"])) for one in arguments["hypotheses"])
    if not bench.log_read:
        raise Refused("Read the experiment log with query_log first, then state hypotheses (nothing was stored).")
    problem = list_problem(context, ideas) or next((p for idea in ideas if (p := idea_problem(context, idea))), None)
    if problem is not None:
        raise Refused(f"{problem} Nothing was stored; send the whole list again.")
    bench.stated = ideas
    if context.purpose == "diagnosis" and context.goal.stop.pause_after_diagnosis:
        return ToolResult("Stored. The goal asks for a pause after the diagnosis: people look at the hypotheses now.",
                          ends=Proposal("hypotheses", True, ideas))
    listed = ", ".join(f"{idea.id} ({idea.expected_gain:+.0%})" for idea in ideas)
    return ToolResult(f"Stored: {listed}. Implement {ideas[0].id} first: submit_candidate with hypothesis "
                      f"\"{ideas[0].id}\".")


END = r"$(?!\n)"
"""The end of a text: a dollar sign alone lets a last line feed pass."""
_IDEA = strict({
    "id": {"type": "string", "pattern": f"^[A-Za-z0-9][A-Za-z0-9_.-]{{0,23}}{END}",
           "description": "a short id, such as h1"},
    "direction": {"type": "string", "enum": [str(one) for one in Direction], "description": "what the idea is about"},
    "function": {"type": "string", "pattern": f"^[A-Za-z_][A-Za-z0-9_]{{0,79}}{END}",
                 "description": "the kernel function it touches"},
    "text": {"type": "string", "minLength": 10, "maxLength": 1200,
             "description": "the idea in terms of bytes, operations, occupancy or latency"},
    "evidence": {"type": "string", "minLength": 3, "maxLength": 600,
                 "description": "the figure of profile, verdict or log that speaks for it"},
    "expected_gain": {"type": "number", "exclusiveMinimum": 0, "maximum": 100,
                      "description": "gain over the incumbent as a fraction: 0.35 is 35 % faster"},
})

STATE_HYPOTHESES = Tool(
    "state_hypotheses",
    "State new hypotheses, best first. The diagnosis needs three to five; replaces what was stated in this asking.",
    strict({"hypotheses": {"type": "array", "minItems": 1, "maxItems": MOST, "items": _IDEA,
                           "description": "one to five ideas, the largest expected gain first"}}),
    _run, ending=True,
)
