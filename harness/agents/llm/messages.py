"""A conversation in the chat-completions form: what the model said goes back as it can be read by every server, results
of tools are shortened where the model's context is too short."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from harness.agents.llm.data import tokens_of
from harness.agents.llm.tools.arguments import MAX_CHARACTERS
from harness.domain.turn import Answer, ToolCall

Message = dict[str, Any]
LEFT_OUT = "(left out to fit the model's context; call the tool again to see it)"
ECHOED, ECHOED_WHOLE = 2000, 12_000
"""Characters of an answer that go back to the model: of one that was cut off or cannot be read, and of any other."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def said(answer: Answer, cut: bool = False) -> Message:
    """The model's answer as a message. An empty one is named, because servers refuse empty messages."""
    text = answer.text.strip() or answer.refusal.strip()
    most = ECHOED if cut else ECHOED_WHOLE
    if len(text) > most:
        text = f"{text[:most]} ({'cut off' if cut else 'the rest is left out'})"
    if not answer.calls:
        return {"role": "assistant", "content": text or "(empty answer)"}
    echoed, left = [], MAX_CHARACTERS
    for call in answer.calls:
        made = _echo(call, left)
        left -= len(made["function"]["arguments"])
        echoed.append(made)
    return {"role": "assistant", "content": text or None, "tool_calls": echoed}


def _echo(call: ToolCall, left: int) -> Message:
    """Servers read the arguments of earlier calls as JSON objects and fail where they are not; what came stays in the
    stored answer as it was. ``left``: characters that may still be said again of one answer, which may have a hundred
    calls; each further question would carry all of them."""
    name = call.name if _NAME.fullmatch(call.name) else "unknown_tool"
    if len(call.arguments) > left and len(call.arguments) <= MAX_CHARACTERS:
        short = json.dumps({"left_out": f"{len(call.arguments):,} characters"})
        return {"id": call.id, "type": "function", "function": {"name": name, "arguments": short}}
    try:
        sound = len(call.arguments) <= MAX_CHARACTERS and isinstance(json.loads(call.arguments), dict)
    except (ValueError, RecursionError):
        sound = False
    arguments = call.arguments if sound else json.dumps({"unreadable": call.arguments[:ECHOED]})
    return {"id": call.id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(call: ToolCall, text: str) -> Message:
    """What a tool answered."""
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def user(text: str) -> Message:
    """What the harness says."""
    return {"role": "user", "content": text}


def shortened(messages: Sequence[Message], results: int | None) -> list[Message]:
    """The messages with only the newest ``results`` tool results whole; the first two messages and all that was said
    stay."""
    if results is None:
        return list(messages)
    tools = [at for at, message in enumerate(messages) if message["role"] == "tool"]
    old = set(tools[: max(0, len(tools) - results)])
    return [{**message, "content": LEFT_OUT} if at in old and len(message["content"]) > len(LEFT_OUT) else message
            for at, message in enumerate(messages)]


def size_of(messages: Sequence[Message]) -> int:
    """About how many tokens a list of messages takes."""
    return sum(tokens_of(json.dumps(message, ensure_ascii=False)) for message in messages)
