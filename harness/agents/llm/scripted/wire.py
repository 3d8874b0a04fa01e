"""A scripted answer in the forms of both APIs, whole or in pieces."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.agents.llm.scripted.conversation import Said

PIECE = 48
"""Characters of a streamed piece."""
Body = dict[str, Any]


def messages_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conversation of a request in either form, as chat messages."""
    if "input" not in body:
        return [item for item in body.get("messages") or () if isinstance(item, dict)]
    items = body["input"]
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    messages: list[dict[str, Any]] = []
    for item in items:
        if item.get("type") == "function_call":
            call = {"id": item["call_id"], "function": {"name": item["name"], "arguments": item["arguments"]}}
            if not messages or messages[-1].get("role") != "assistant":
                messages.append({"role": "assistant", "tool_calls": []})
            messages[-1].setdefault("tool_calls", []).append(call)
        elif item.get("type") == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
        else:
            messages.append(dict(item))
    return messages


def tokens(*texts: str) -> int:
    """Tokens as this server counts them: four characters each."""
    return math.ceil(sum(map(len, texts)) / 4)


def counted(body: Mapping[str, Any], said: Said) -> tuple[int, int, int]:
    """(sent, said, of which thoughts)."""
    whole = [text for call in said.calls for text in call]
    return (tokens(json.dumps(body.get("messages") or body.get("input"))), tokens(said.text, said.reasoning, *whole),
            tokens(said.reasoning))


def completion(identity: str, body: Mapping[str, Any], said: Said) -> Body:
    """A chat completion that comes whole."""
    message: Body = {"role": "assistant", "content": said.text or None}
    if said.reasoning:
        message["reasoning_content"] = said.reasoning
    if said.calls:
        message["tool_calls"] = [_call(identity, number, call) for number, call in enumerate(said.calls)]
    return {"id": identity, "object": "chat.completion", "model": body.get("model"), "usage": _chat_usage(body, said),
            "choices": [{"index": 0, "message": message, "finish_reason": said.reason}]}


def chunks(identity: str, body: Mapping[str, Any], said: Said) -> Iterator[Body]:
    """A chat completion in pieces, its tokens last where they were asked for."""
    def piece(finish: str | None = None, **delta: Any) -> Body:
        return {"id": identity, "object": "chat.completion.chunk", "model": body.get("model"),
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield piece(role="assistant")
    for text in pieces(said.reasoning):
        yield piece(reasoning_content=text)
    for text in pieces(said.text):
        yield piece(content=text)
    for number, call in enumerate(said.calls):
        whole = _call(identity, number, call)
        yield piece(tool_calls=[{**whole, "index": number, "function": {"name": call[0], "arguments": ""}}])
        for text in pieces(call[1]):
            yield piece(tool_calls=[{"index": number, "function": {"arguments": text}}])
    yield piece(said.reason)
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {"id": identity, "object": "chat.completion.chunk", "choices": [], "usage": _chat_usage(body, said)}


def response(identity: str, body: Mapping[str, Any], said: Said) -> Body:
    """A response that comes whole."""
    output: list[Body] = []
    if said.reasoning:
        output.append({"type": "reasoning", "id": f"rs_{identity}",
                       "summary": [{"type": "summary_text", "text": said.reasoning}]})
    if said.text:
        output.append({"type": "message", "id": f"msg_{identity}", "role": "assistant",
                       "content": [{"type": "output_text", "text": said.text}]})
    output += [{"type": "function_call", "id": f"fc_{identity}_{number}", "call_id": f"call_{identity}_{number}",
                "name": name, "arguments": text} for number, (name, text) in enumerate(said.calls)]
    sent, answered, thought = counted(body, said)
    cut = said.reason == "length"
    return {"id": identity, "object": "response", "model": body.get("model"), "output": output,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "usage": {"input_tokens": sent, "output_tokens": answered, "total_tokens": sent + answered,
                      "output_tokens_details": {"reasoning_tokens": thought}}}


def events(identity: str, body: Mapping[str, Any], said: Said) -> Iterator[Body]:
    """A response in events."""
    whole = response(identity, body, said)
    yield {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress", "usage": None}}
    for place, item in enumerate(whole["output"]):
        if item["type"] == "function_call":
            yield {"type": "response.output_item.added", "output_index": place, "item": {**item, "arguments": ""}}
            for text in pieces(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", "output_index": place, "delta": text}
            yield {"type": "response.output_item.done", "output_index": place, "item": item}
        else:
            kind = "output_text" if item["type"] == "message" else "reasoning_summary_text"
            for text in pieces(said.text if item["type"] == "message" else said.reasoning):
                yield {"type": f"response.{kind}.delta", "output_index": place, "delta": text}
    yield {"type": f"response.{whole['status']}", "response": whole}


def pieces(text: str) -> Sequence[str]:
    """A text as it is streamed."""
    return [text[start:start + PIECE] for start in range(0, len(text), PIECE)]


def _call(identity: str, number: int, call: tuple[str, str]) -> Body:
    return {"id": f"call_{identity}_{number}", "type": "function", "function": {"name": call[0], "arguments": call[1]}}


def _chat_usage(body: Mapping[str, Any], said: Said) -> Body:
    sent, answered, thought = counted(body, said)
    return {"prompt_tokens": sent, "completion_tokens": answered, "total_tokens": sent + answered,
            "completion_tokens_details": {"reasoning_tokens": thought}}
