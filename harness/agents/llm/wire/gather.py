"""Puts an answer together from pieces, whatever server they come from. Pure: no network, no clock."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.agents.llm.ports import Delta, DeltaKind
from harness.domain.turn import Answer, ToolCall, Usage

CHARACTERS_PER_TOKEN = 3.5
MOST_CHARACTERS = 1_000_000
"""Of one answer, which is more than any model says at once. Eight conversations may hold two dozen of them each."""
MOST_CALLS = 128
THOUGHTS = ("<think>", "</think>")
FINISH = {
    "max_tokens": "length", "MAX_TOKENS": "length", "max_output_tokens": "length", "model_length": "length",
    "end_turn": "stop", "STOP": "stop", "eos": "stop", "eos_token": "stop", "stop_sequence": "stop",
    "tool_use": "tool_calls", "function_call": "tool_calls", "SAFETY": "content_filter", "safety": "content_filter",
}
"""Other servers' words for the reasons of the chat-completions form."""


class Nonsense(Exception):
    """What the endpoint sent cannot be read as an answer, or is larger than any answer may be."""


class CallPieces:
    """One tool call while it comes in."""

    def __init__(self, identity: str = "") -> None:
        self.id = identity
        self.name = ""
        self.arguments: list[str] = []


class Gathered:
    """What has come in of one answer. ``size`` bounds it; an endpoint that never ends must not fill the memory."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        self.calls: list[CallPieces] = []
        self.finish = ""
        self.model = ""
        self.usage: Usage | None = None
        self.ended = False
        self.size = 0

    @property
    def anything(self) -> bool:
        """Whether the model said anything at all."""
        return bool(self.size)

    def add(self, kind: DeltaKind, into: list[str], piece: str) -> Iterator[Delta]:
        """Keep a piece and tell of it.

        Raises:
            Nonsense: the answer is larger than any answer may be.
        """
        if not piece:
            return
        self.size += len(piece)
        if self.size > MOST_CHARACTERS:
            raise Nonsense(f"the answer is longer than {MOST_CHARACTERS:,} characters")
        into.append(piece)
        yield Delta(kind, readable(piece))

    def begin_call(self, identity: str = "") -> CallPieces:
        """A further tool call.

        Raises:
            Nonsense: no answer has that many.
        """
        if len(self.calls) >= MOST_CALLS:
            raise Nonsense(f"the answer has more than {MOST_CALLS} tool calls")
        self.calls.append(CallPieces(identity))
        return self.calls[-1]

    def answer(self) -> Answer:
        """The answer as far as it came; ``usage`` is empty and marked as estimated where nothing was said of it."""
        text, thoughts = apart(readable("".join(self.text)))
        reasoning = "\n".join(part for part in (readable("".join(self.reasoning)), thoughts) if part)
        return Answer(text, reasoning, readable("".join(self.refusal)), self._calls(),
                      FINISH.get(self.finish, readable(self.finish)), self.usage or Usage(estimated=True),
                      readable(self.model))

    def _calls(self) -> tuple[ToolCall, ...]:
        seen: set[str] = set()
        calls = []
        for number, pieces in enumerate(self.calls):
            # An answer to a call names its id, so that two calls must not share one.
            name = readable(pieces.id) or f"call_{number}"
            while name in seen:
                name += f"_{number}"
            seen.add(name)
            calls.append(ToolCall(name, readable(pieces.name), readable("".join(pieces.arguments))))
        return tuple(calls)


def readable(text: str) -> str:
    """The text as it can be stored anywhere: halves of characters are joined or replaced, no NUL."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\x00", "\ufffd")


def apart(text: str) -> tuple[str, str]:
    """(text, thoughts): servers without a reasoning parser leave thoughts between marks at the text's beginning."""
    opening, closing = THOUGHTS
    begun = text.lstrip()
    if not begun.startswith(opening):
        return text, ""
    thoughts, mark, rest = begun[len(opening):].partition(closing)
    return rest.lstrip("\n") if mark else "", thoughts.strip()


def words(value: Any) -> str:
    """The text of a content field: a string, or parts of which some are text."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return "".join(words(part.get("text", "")) for part in value
                       if isinstance(part, Mapping) and part.get("type", "text") in ("text", "output_text"))
    return ""


def as_arguments(value: Any) -> str:
    """Arguments as text: some servers send an object where a text of JSON belongs."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def count(document: Any, *path: str) -> int | None:
    """A whole number that is not negative, at a path of keys; ``None`` where there is none."""
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    sound = isinstance(document, int | float) and not isinstance(document, bool) and math.isfinite(document)
    return int(document) if sound and 0 <= document < 1e12 else None


def estimate(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], answer: Answer) -> Usage:
    """Tokens by the number of characters, for an endpoint that does not count."""
    sent = len(json.dumps([list(messages), list(tools)], ensure_ascii=False, default=str))
    said = sum(map(len, (answer.text, answer.reasoning, answer.refusal)))
    said += sum(len(call.name) + len(call.arguments) for call in answer.calls)
    return Usage(math.ceil(sent / CHARACTERS_PER_TOKEN), math.ceil(said / CHARACTERS_PER_TOKEN),
                 reasoning=math.ceil(len(answer.reasoning) / CHARACTERS_PER_TOKEN), estimated=True)
