"""A question in the form of one of the two APIs, and the names of its optional parameters there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from harness.agents.llm.ports import Question
from harness.agents.llm.wire import openai_chat, openai_responses
from harness.agents.llm.wire.openai_chat import (
    EFFORT,
    MOST_TOKENS,
    NEWER_LIMIT,
    ROLES,
    STRICT,
    TOOLS,
    ChatPieces,
    spelt,
)
from harness.agents.llm.wire.openai_responses import ResponsePieces
from harness.agents.llm.wire.sending import Pieces, Sending

Api = Literal["chat", "responses"]
NEVER_LEFT_OUT = ("model", "messages", "input")
OURS = ("stream", "stream_options", "store", ROLES, STRICT, NEWER_LIMIT)
"""What a question does not name, so that leaving it out is nothing to tell of."""
RESPONSE_NAMES = {"reasoning": EFFORT, "max_output_tokens": NEWER_LIMIT}


def form(api: Api, question: Question, refused: Collection[str]) -> tuple[Sending, Pieces]:
    """What is sent, and what gathers the answer to it."""
    if api == "chat":
        body = openai_chat.request(question, refused)
        return Sending(api, body, _optional(question, body)), ChatPieces()
    body = openai_responses.request(question, refused)
    return Sending(api, body, _optional(question, body)), ResponsePieces()


def remembered_as(api: Api, name: str) -> str:
    """The name under which a refused parameter is left out in later questions."""
    return RESPONSE_NAMES.get(name, name) if api == "responses" else name


def answered_parameters(question: Question, refused: Collection[str]) -> tuple[str, ...]:
    """What of the question itself was left out for its answer. An answer's limit under its newer name was not."""
    asked = set(spelt(question.parameters)) | ({TOOLS} if question.tools else set())
    gone = {name for name in refused if name not in OURS and name != MOST_TOKENS}
    if NEWER_LIMIT in refused:
        gone.add(MOST_TOKENS)
    return tuple(sorted(asked & gone))


def _optional(question: Question, body: dict[str, Any]) -> frozenset[str]:
    names = {name for name in body if name not in NEVER_LEFT_OUT}
    if TOOLS in body and any(STRICT in tool.get("function", tool) for tool in body[TOOLS]):
        names.add(STRICT)
    sent = body.get("messages", ())
    if any(message.get("role") not in ("user", "assistant") for message in sent):
        names.add(ROLES)
    return frozenset(names)
