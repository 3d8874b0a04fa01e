"""Reading an answer: its calls, or why it is of no use. What is repaired is visible: code in prose submits nothing and
is only kept, so that the model can hand it in by a call; a call written as text is taken where it is all there is."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

from harness.agents.llm.marks import fenced, tagged
from harness.agents.llm.tools import TOOLS
from harness.agents.llm.tools.arguments import arguments_of
from harness.agents.llm.tools.tool import Refused
from harness.domain.turn import Answer, ToolCall
from harness.domain.words import one_line
from harness.evaluation.source.intake import MAX_BYTES

Kind = Literal["calls", "prose_calls", "refusal", "truncated", "code", "empty", "prose"]
CUT = ("length", "max_tokens")
MOST_WRITTEN = 32
"""Calls written as text that are looked at."""
_CALLED = re.compile(r"(\w{1,64})\s*\((\{.*\})\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reading:
    """``fault`` is empty where something of the answer can be used, else the sentence its turn is stored with (the
    model's fault). ``cut``: the answer ended early. ``code``: a kernel in prose."""

    kind: Kind
    calls: tuple[ToolCall, ...] = ()
    fault: str = ""
    cut: bool = False
    code: str = ""


def read(answer: Answer) -> Reading:
    """What an answer is."""
    cut = answer.finish in CUT
    if answer.calls:
        return Reading("calls", answer.calls, _calls_fault(answer.calls, cut), cut)
    text = answer.text.strip()
    if answer.refusal.strip() or answer.finish == "content_filter":
        return Reading("refusal", fault="The model refused to answer.")
    if cut:
        spent = " while it was thinking" if answer.reasoning and not text else ""
        return Reading("truncated", fault=f"The answer was cut off at its limit of tokens{spent}.", cut=True)
    if not text:
        thought = " It thought and said nothing." if answer.reasoning else ""
        finish = one_line(answer.finish, 40) or "not given"
        return Reading("empty", fault=f"The answer was empty (finish: {finish}).{thought}")
    if fenced(text).unclosed or tagged(text).unclosed:
        return Reading("truncated", cut=True, fault="The answer ends inside a code fence or a call: it was cut off, "
                                                    "whatever its finish reason says.")
    calls = prose_calls(text)
    if calls:
        return Reading("prose_calls", calls, _calls_fault(calls, cut=False))
    code = kernel_in(text)
    if code:
        return Reading("code", code=code, fault="The answer has code in prose instead of a call of a tool.")
    return Reading("prose", fault="The answer is prose without a call of a tool.")


def prose_calls(text: str) -> tuple[ToolCall, ...]:
    """Calls that were written as text, where they are all of it: ``<tool_call>`` blocks, one JSON object with a known
    tool's name and its arguments, or ``name({...})``. Anything else is prose."""
    written, blocks = tagged(text), fenced(text)
    if written.bodies:
        bodies = [] if written.outside else list(written.bodies[:MOST_WRITTEN])
    else:
        bodies = [blocks.blocks[0].strip()] if len(blocks.blocks) == 1 and not blocks.outside else [text]
    calls = [_call(number, body) for number, body in enumerate(bodies)]
    return tuple(call for call in calls if call is not None) if None not in calls else ()


def kernel_in(text: str) -> str:
    """The longest fenced block that defines ``run`` and is short enough to be a kernel, empty where there is none."""
    blocks = [block for block in fenced(text).blocks
              if (block.startswith("def run(") or "\ndef run(" in block) and len(block) <= MAX_BYTES]
    return max(blocks, key=len, default="")


def _call(number: int, body: str) -> ToolCall | None:
    called = _CALLED.fullmatch(body)
    if called is not None and called[1] in TOOLS:
        return ToolCall(f"written_{number}", called[1], called[2])
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or len(value) != 2 or value.get("name") not in TOOLS:
        return None
    arguments = value.get("arguments", value.get("parameters"))
    return ToolCall(f"written_{number}", value["name"], json.dumps(arguments)) if isinstance(arguments, dict) else None


def _calls_fault(calls: tuple[ToolCall, ...], cut: bool) -> str:
    """The first fault where no call can be run at all."""
    first = ""
    for call in calls:
        fault = call_fault(call, cut)
        if not fault:
            return ""
        first = first or fault
    return first


def call_fault(call: ToolCall, cut: bool = False) -> str:
    """Why a call cannot be run: an unknown tool, wrong arguments, or an answer cut off around it. Empty: it can."""
    tool = TOOLS.get(call.name)
    if tool is None:
        return f"The model called a tool that does not exist: {call.name[:60]}."
    if cut and tool.ending:
        return f"The call of {tool.name} stands in an answer that was cut off at its limit of tokens."
    try:
        arguments_of(tool, call.arguments)
    except Refused as refused:
        return str(refused)
    return ""
