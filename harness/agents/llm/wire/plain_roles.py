"""Conversations for models that know fewer roles: no tools, no system, strict turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.agents.llm.wire.gather import words


def without_tools(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tool calls and their results as prose, for a model whose server knows no tools."""
    plain = []
    for message in messages:
        if message.get("role") == "tool":
            name = message.get("name") or message.get("tool_call_id", "")
            plain.append({"role": "user", "content": f"Result of the tool {name}:\n{words(message.get('content'))}"})
        elif message.get("tool_calls"):
            said = [words(message.get("content"))]
            said += [f"{call['function']['name']}({call['function']['arguments']})" for call in message["tool_calls"]]
            plain.append({"role": message["role"], "content": "\n".join(part for part in said if part)})
        else:
            plain.append(dict(message))
    return plain


def user_and_assistant(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Only user and assistant, in turns, the user first, for chat templates that accept nothing else."""
    turns: list[dict[str, Any]] = []
    for message in without_tools(messages):
        role = "assistant" if message.get("role") == "assistant" else "user"
        text = words(message.get("content"))
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{text}"
        elif turns or role == "user":
            turns.append({"role": role, "content": text})
    return turns
