"""Chat completions: the form that every OpenAI-compatible server speaks, as a request and as pieces of an answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from harness.agents.llm.ports import Delta, Question
from harness.agents.llm.wire.gather import CallPieces, Gathered, Nonsense, as_arguments, count, words
from harness.agents.llm.wire.plain_roles import user_and_assistant, without_tools
from harness.domain.turn import Usage

EFFORT, MOST_TOKENS = "reasoning_effort", "max_tokens"
SPELLINGS = {"effort": EFFORT, "max_completion_tokens": MOST_TOKENS, "max_output_tokens": MOST_TOKENS}
"""A question may name these parameters either way; the right side is how they are known here."""
TOOLS, ROLES, STRICT, STREAM, NEWER_LIMIT = "tools", "roles", "strict", "stream", "max_completion_tokens"
WITH_TOOLS = (TOOLS, "tool_choice", "parallel_tool_calls")
REASONING = ("reasoning_content", "reasoning", "thinking")
"""The fields in which servers put a model's thoughts, one of them in each piece."""


def spelt(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters under the names of this package; those that are ``None`` are not sent."""
    return {SPELLINGS.get(name, name): value for name, value in parameters.items() if value is not None}


def request(question: Question, without: Collection[str]) -> dict[str, Any]:
    """The body for a question, without what this model was found to refuse.

    ``max_tokens`` goes first and ``max_completion_tokens`` only once a server demands it: servers that know the newer
    name alone refuse the older aloud, those that know the older alone ignore the newer silently.
    """
    body: dict[str, Any] = {"model": question.model, "messages": [dict(item) for item in question.messages]}
    if question.tools:
        body[TOOLS] = [dict(tool) for tool in question.tools]
    body |= {STREAM: True, "stream_options": {"include_usage": True}, **spelt(question.parameters)}
    if not question.tools or TOOLS in without:
        for name in WITH_TOOLS:
            body.pop(name, None)
        if TOOLS in without:
            body["messages"] = without_tools(body["messages"])
    if ROLES in without:
        body["messages"] = user_and_assistant(body["messages"])
    if STRICT in without and TOOLS in body:
        body[TOOLS] = [{**tool, "function": {key: value for key, value in tool["function"].items() if key != STRICT}}
                       for tool in body[TOOLS]]
    if NEWER_LIMIT in without:  # refused as well: then there is no limit to set
        body.pop(MOST_TOKENS, None)
    elif MOST_TOKENS in without and MOST_TOKENS in body:
        body[NEWER_LIMIT] = body.pop(MOST_TOKENS)
    for name in without:
        if name not in (TOOLS, ROLES, STRICT, MOST_TOKENS):
            body.pop(name, None)
    if STREAM in without:
        body.pop("stream_options", None)
    return body


class ChatPieces:
    """Gathers the pieces of a streamed completion; a completion that comes whole is one piece."""

    def __init__(self) -> None:
        self.gathered = Gathered()
        self._by_index: dict[Any, CallPieces] = {}

    def feed(self, piece: Any) -> Iterator[Delta]:
        """Take one piece in.

        Raises:
            Nonsense: it is no piece of a completion.
        """
        if not isinstance(piece, Mapping):
            raise Nonsense("a piece of the answer is no completion")
        into = self.gathered
        if isinstance(piece.get("model"), str):
            into.model = piece["model"]
        if isinstance(piece.get("usage"), Mapping):
            into.usage = usage(piece["usage"]) or into.usage
        choices = piece.get("choices")
        if not isinstance(choices, list):
            return
        choice = next((item for item in choices if isinstance(item, Mapping) and not item.get("index")), None)
        if choice is None:
            return
        for key in ("delta", "message"):
            if isinstance(choice.get(key), Mapping):
                yield from self._message(choice[key])
        if isinstance(choice.get("finish_reason"), str) and choice["finish_reason"]:
            into.finish, into.ended = choice["finish_reason"], True

    def _message(self, message: Mapping[str, Any]) -> Iterator[Delta]:
        into = self.gathered
        thoughts = next((message[key] for key in REASONING if isinstance(message.get(key), str) and message[key]), "")
        yield from into.add("reasoning", into.reasoning, thoughts or _thinking_parts(message.get("content")))
        yield from into.add("text", into.text, words(message.get("content")))
        yield from into.add("text", into.refusal, words(message.get("refusal")))
        calls = message.get("tool_calls")
        if isinstance(message.get("function_call"), Mapping):  # the form before tools
            calls = [{"index": 0, "function": message["function_call"]}]
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, Mapping):
                yield from self._call(call)

    def _call(self, call: Mapping[str, Any]) -> Iterator[Delta]:
        function = call.get("function") if isinstance(call.get("function"), Mapping) else call
        assert isinstance(function, Mapping)
        name = function["name"] if isinstance(function.get("name"), str) else ""
        pieces = self._pieces(call, name)
        if name and name != pieces.name:  # some servers repeat the name with every piece
            pieces.name += name
            yield from self.gathered.add("call", [], name)
        yield from self.gathered.add("call", pieces.arguments, as_arguments(function.get("arguments")))

    def _pieces(self, call: Mapping[str, Any], name: str) -> CallPieces:
        """The call that a piece continues. Some servers number every call 0 and tell them apart by id, some number
        none."""
        identity = call["id"] if isinstance(call.get("id"), str) else ""
        index = call["index"] if isinstance(call.get("index"), int) else identity or None
        known = self._by_index.get(index)
        if known is None and index is None and not name and self.gathered.calls:
            known = self.gathered.calls[-1]
        if known is None or (name and identity and known.id and identity != known.id):
            known = self.gathered.begin_call()
            self._by_index[index] = known
        known.id = known.id or identity
        return known


def usage(counted: Mapping[str, Any]) -> Usage | None:
    """The tokens that a server counted, ``None`` where that is no count."""
    sent, said = count(counted, "prompt_tokens"), count(counted, "completion_tokens")
    if sent is None or said is None:
        return None
    cached = count(counted, "prompt_tokens_details", "cached_tokens") or count(counted, "prompt_cache_hit_tokens") or 0
    return Usage(sent, said, min(cached, sent), count(counted, "completion_tokens_details", "reasoning_tokens") or 0)


def _thinking_parts(content: Any) -> str:
    parts = content if isinstance(content, list) else []
    return "".join(words(part.get("thinking")) for part in parts
                   if isinstance(part, Mapping) and part.get("type") == "thinking")
