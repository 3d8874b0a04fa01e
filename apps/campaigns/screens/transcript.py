"""The turns of a language model as a round's page shows them: what was sent, what came back, what it cost.

Everything in a turn was written by a model or an endpoint. It is passed on as plain text; templates escape it and show
hidden characters by name. Nothing of it is interpreted but JSON that is laid out for reading.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

LONG_CHARACTERS = 600
LONG_LINES = 14
MOST_CHARACTERS = 60_000
MOST_TURNS = 80
"""Turns that a page shows, the last ones; the sums and the export have all."""
ROLES = {"system": "Rules and facts", "developer": "Rules and facts", "user": "Asked", "assistant": "Answered before",
         "tool": "Result of a tool"}
BLAMES = {"model": "the model’s", "provider": "the endpoint’s or the network’s, not charged"}
FINISHES = {"length": "cut off at the longest answer", "content_filter": "stopped by the endpoint’s filter",
            "stop": "finished", "tool_calls": "asks for tools"}


@dataclass(frozen=True, slots=True)
class Said:
    """A text with what it is; ``cut`` counts characters that only the export has."""

    title: str
    text: str
    cut: int = 0

    @property
    def long(self) -> bool:
        """Whether it is folded."""
        return len(self.text) > LONG_CHARACTERS or self.text.count("\n") > LONG_LINES

    @property
    def characters(self) -> int:
        """How long it is as a whole."""
        return len(self.text) + self.cut

    @property
    def opening(self) -> str:
        """Its first words, for the line it is folded into."""
        return " ".join(self.text[:200].split())[:120]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with its arguments as they came (``json`` when they are JSON) and its result, ``None`` when none is
    stored: the call ended the asking, or the campaign was interrupted."""

    id: str
    name: str
    arguments: Said
    json: bool
    result: Said | None


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One turn of a conversation. ``messages`` are those added since the turn before; results of tools stand with their
    calls."""

    document: Mapping[str, Any]
    messages: tuple[Said, ...]
    text: Said | None
    reasoning: Said | None
    refusal: str
    calls: tuple[Call, ...]
    again: int = 0  # how many turns of the same name came before: somebody changed what was asked

    @property
    def status(self) -> str:
        """``open``, ``complete``, ``failed`` or ``cancelled``."""
        return str(self.document.get("status", ""))

    @property
    def answer(self) -> Mapping[str, Any]:
        """The answer's document; empty when there is none."""
        return self.document.get("answer") or {}

    @property
    def usage(self) -> Mapping[str, Any]:
        """Tokens as counted; empty when there is no answer."""
        return self.answer.get("usage") or {}

    @property
    def finish(self) -> str:
        """The endpoint's reason with what it means."""
        reason = str(self.answer.get("finish") or "")
        return f"{reason}: {FINISHES[reason]}" if reason in FINISHES else reason

    @property
    def cut_off(self) -> bool:
        """Whether the answer did not end by itself."""
        return self.answer.get("finish") in ("length", "content_filter")

    @property
    def blame(self) -> str:
        """Whose fault it was that nothing usable came."""
        blame = str(self.document.get("blame") or "")
        return BLAMES.get(blame, blame)

    @property
    def began(self) -> datetime | None:
        """When it was sent; ``None`` when the document does not say."""
        try:
            found = datetime.fromisoformat(str(self.document.get("began") or ""))
        except ValueError:
            return None
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    @property
    def name(self) -> str:
        """Names the turn within its round, for anchors: ``1.0.3``; ``1.0.3-1`` when something else was asked again."""
        return turn_name(self.document) + (f"-{self.again}" if self.again else "")


def turn_name(document: Mapping[str, Any]) -> str:
    """Attempt, sample and number of a turn."""
    return ".".join(str(document.get(key, 0)) for key in ("attempt", "sample", "number"))


@dataclass(slots=True)
class Asking:
    """One conversation: an attempt of a round, and one of its parallel samples."""

    attempt: int
    sample: int
    turns: list[TurnRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Transcript:
    """All conversations of a round with their sums; ``money`` by currency, ``unpriced`` turns had no price. The first
    ``left_out`` turns of a very long round are not among the askings."""

    askings: tuple[Asking, ...]
    turns: int
    tokens_in: int
    tokens_out: int
    estimated: bool
    money: tuple[tuple[str, float], ...]
    unpriced: int
    seconds: float
    retries: int
    templates: tuple[str, ...]
    models: tuple[str, ...]
    left_out: int


def transcript(documents: Iterable[Mapping[str, Any]]) -> Transcript:
    """The turns of one round, by attempt, sample and number."""
    rows = sorted(documents, key=lambda one: tuple(int(one.get(key) or 0) for key in ("attempt", "sample", "number")))
    results = results_of(rows)
    askings: dict[tuple[int, int], Asking] = {}
    left_out = max(0, len(rows) - MOST_TURNS)
    for row in rows[left_out:]:
        key = (int(row.get("attempt") or 0), int(row.get("sample") or 0))
        asking = askings.setdefault(key, Asking(*key))
        again = sum(turn_name(turn.document) == turn_name(row) for turn in asking.turns)
        asking.turns.append(turn_row(row, results.get(key, {}), later=bool(asking.turns), again=again))
    usages = [(row.get("answer") or {}).get("usage") or {} for row in rows]
    money: dict[str, float] = {}
    for row in rows:
        if row.get("cost") is not None:
            money[str(row.get("currency") or "")] = money.get(str(row.get("currency") or ""), 0.0) + float(row["cost"])
    return Transcript(
        tuple(askings.values()), len(rows), sum(int(one.get("input") or 0) for one in usages),
        sum(int(one.get("output") or 0) for one in usages), any(one.get("estimated") for one in usages),
        tuple(sorted(money.items())), sum(row.get("cost") is None and bool(row.get("answer")) for row in rows),
        sum(float(row.get("latency_s") or 0.0) for row in rows), sum(int(row.get("retries") or 0) for row in rows),
        tuple(dict.fromkeys(str(row.get("template") or "") for row in rows)),
        tuple(dict.fromkeys(f"{row.get('model')} at {row.get('endpoint')}" for row in rows)),
        left_out,
    )


def results_of(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[int, int], dict[str, str]]:
    """Texts that tools answered, by conversation and the call's id; they are in the turn after the call."""
    found: dict[tuple[int, int], dict[str, str]] = {}
    for row in rows:
        key = (int(row.get("attempt") or 0), int(row.get("sample") or 0))
        for message in row.get("messages") or ():
            if isinstance(message, Mapping) and message.get("role") == "tool":
                found.setdefault(key, {})[str(message.get("tool_call_id"))] = content_text(message)
    return found


def turn_row(document: Mapping[str, Any], results: Mapping[str, str], *, later: bool, again: int) -> TurnRow:
    """One turn. In a ``later`` turn the answer before and its tools' results are not said again."""
    answer = document.get("answer") or {}
    messages = [message for message in document.get("messages") or () if isinstance(message, Mapping)]
    told = [message for message in messages if not (later and message.get("role") in ("assistant", "tool"))]
    return TurnRow(
        document, tuple(said(ROLES.get(str(message.get("role")), str(message.get("role"))), content_text(message))
                        for message in told),
        said("Answer", answer["text"]) if answer.get("text") else None,
        said("Reasoning", answer["reasoning"]) if answer.get("reasoning") else None,
        str(answer.get("refusal") or ""),
        tuple(call_of(call, results) for call in answer.get("calls") or ()),
        again,
    )


def call_of(call: Mapping[str, Any], results: Mapping[str, str]) -> Call:
    """A call with its arguments laid out where they are JSON, as they came where they are not."""
    arguments, is_json = laid_out(str(call.get("arguments") or ""))
    result = results.get(str(call.get("id")))
    return Call(str(call.get("id") or ""), str(call.get("name") or ""), said("Arguments", arguments), is_json,
                None if result is None else said("Result", result))


def laid_out(text: str) -> tuple[str, bool]:
    """JSON over several lines, its texts with real line ends; anything else unchanged, and whether it was JSON."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text, False
    if not isinstance(found, dict):
        return text, True
    lines = []
    for key, value in found.items():
        if isinstance(value, str) and "\n" in value:
            lines.append(f"{key}:\n{value}")
        else:
            lines.append(f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines), True


def content_text(message: Mapping[str, Any]) -> str:
    """The text of a message in the chat form: a string, or parts of which the texts count; calls as lines."""
    content = message.get("content")
    if isinstance(content, str):
        text = content
    elif isinstance(content, list):
        text = "\n".join(str(part.get("text", "")) if isinstance(part, Mapping) else str(part) for part in content)
    else:
        text = "" if content is None else json.dumps(content, ensure_ascii=False)
    calls = [call.get("function") or {} for call in message.get("tool_calls") or () if isinstance(call, Mapping)]
    return "\n".join([*([text] if text else []), *(f"{one.get('name')}({one.get('arguments')})" for one in calls)])


def said(title: str, text: object) -> Said:
    """A text, at most ``MOST_CHARACTERS`` of it."""
    whole = str(text)
    return Said(title, whole[:MOST_CHARACTERS], max(0, len(whole) - MOST_CHARACTERS))
