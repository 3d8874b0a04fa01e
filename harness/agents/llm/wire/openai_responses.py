"""The Responses API: the same question as its request, and its events as pieces of an answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from harness.agents.llm.ports import Delta, Question
from harness.agents.llm.wire.gather import CallPieces, Gathered, Nonsense, as_arguments, count, words
from harness.agents.llm.wire.openai_chat import EFFORT, MOST_TOKENS, NEWER_LIMIT, STRICT, TOOLS, WITH_TOOLS, spelt
from harness.agents.llm.wire.plain_roles import without_tools
from harness.domain.turn import Usage

TEXT = ("response.output_text.delta",)
THOUGHTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
REFUSAL = ("response.refusal.delta",)
ARGUMENTS = ("response.function_call_arguments.delta",)
OVER = ("response.completed", "response.incomplete", "response.failed")
CUT_SHORT = {"max_output_tokens": "length", "max_tokens": "length", "content_filter": "content_filter"}


def request(question: Question, without: Collection[str]) -> dict[str, Any]:
    """The body for a question, without what this model was found to refuse. Nothing is left stored at the endpoint:
    the whole conversation goes with every question."""
    parameters = spelt(question.parameters)
    messages = [dict(item) for item in question.messages]
    if TOOLS in without:
        messages = without_tools(messages)
    if not question.tools or TOOLS in without:
        parameters = {name: value for name, value in parameters.items() if name not in WITH_TOOLS}
    items = [item for message in messages for item in _items(message)]
    body: dict[str, Any] = {"model": question.model, "input": items}
    body |= {"stream": True, "store": False}
    if question.tools and TOOLS not in without:
        body[TOOLS] = [_tool(tool, STRICT not in without) for tool in question.tools]
    for name, value in parameters.items():
        if (NEWER_LIMIT if name == MOST_TOKENS else name) in without:
            continue
        if name == EFFORT:
            body["reasoning"] = {"effort": value}
        elif name == MOST_TOKENS:
            body["max_output_tokens"] = value
        elif name == "tool_choice" and isinstance(value, Mapping):
            body[name] = {"type": "function", "name": value.get("function", {}).get("name", "")}
        else:
            body[name] = value
    for name in ("store", "stream"):
        if name in without:
            body.pop(name)
    return body


def _items(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    role = message.get("role")
    if role == "tool":
        yield {"type": "function_call_output", "call_id": message.get("tool_call_id", ""),
               "output": words(message.get("content"))}
        return
    text = words(message.get("content"))
    if text or not message.get("tool_calls"):
        yield {"role": role, "content": text}
    for call in message.get("tool_calls") or ():
        yield {"type": "function_call", "call_id": call["id"], "name": call["function"]["name"],
               "arguments": call["function"]["arguments"]}


def _tool(tool: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    function = tool.get("function", {})
    # Here, other than in chat completions, schemas are strict unless said, and those know fewer keywords than ours use.
    flat = {"type": "function", STRICT: False, **function}
    if not strict:
        flat.pop(STRICT, None)
    return flat


class ResponsePieces:
    """Gathers the events of a streamed response; a response that comes whole is one piece."""

    def __init__(self) -> None:
        self.gathered = Gathered()
        self._calls: dict[str, CallPieces] = {}

    def feed(self, piece: Any) -> Iterator[Delta]:
        """Take one event in.

        Raises:
            Nonsense: it is no event of a response.
        """
        if not isinstance(piece, Mapping):
            raise Nonsense("a piece of the answer is no event")
        into, kind = self.gathered, piece.get("type")
        if piece.get("object") == "response":
            yield from self._over(piece)
        elif kind in TEXT:
            yield from into.add("text", into.text, words(piece.get("delta")))
        elif kind in REFUSAL:
            yield from into.add("text", into.refusal, words(piece.get("delta")))
        elif kind in THOUGHTS:
            yield from into.add("reasoning", into.reasoning, words(piece.get("delta")))
        elif kind in ARGUMENTS:
            call = self._calls.get(_place(piece, piece.get("item_id")))
            if call is not None:
                yield from into.add("call", call.arguments, as_arguments(piece.get("delta")))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            if isinstance(piece.get("item"), Mapping):
                yield from self._item(piece["item"], _place(piece, piece["item"].get("id")))
        elif kind in OVER and isinstance(piece.get("response"), Mapping):
            yield from self._over(piece["response"])

    def _item(self, item: Mapping[str, Any], place: str) -> Iterator[Delta]:
        """A function call as it begins and, whole, as it ends: what had come in pieces is not taken twice."""
        if item.get("type") != "function_call":
            return
        call = self._calls.get(place)
        if call is None:
            call = self._calls[place] = self.gathered.begin_call(words(item.get("call_id")) or words(item.get("id")))
            call.name = words(item.get("name"))
            yield from self.gathered.add("call", [], call.name)
        if not call.arguments:
            yield from self.gathered.add("call", call.arguments, as_arguments(item.get("arguments")))

    def _over(self, response: Mapping[str, Any]) -> Iterator[Delta]:
        into = self.gathered
        into.ended = True
        into.model = words(response.get("model"))
        if isinstance(response.get("usage"), Mapping):
            into.usage = usage(response["usage"])
        output = response.get("output")
        for place, item in enumerate(output if isinstance(output, list) else []):
            if isinstance(item, Mapping):
                yield from self._whole(item, place)
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        if response.get("status") == "incomplete" or reason:
            into.finish = CUT_SHORT.get(str(reason), str(reason or "incomplete"))
        else:
            into.finish = "tool_calls" if into.calls else "stop"

    def _whole(self, item: Mapping[str, Any], place: int) -> Iterator[Delta]:
        """An item of the finished response, for what no event told of before."""
        into, parts = self.gathered, item.get("content")
        if item.get("type") == "function_call":
            known = any(call.id == item.get("call_id") for call in into.calls)
            if not known:
                yield from self._item(item, str(place))
        elif item.get("type") == "message" and not into.text and not into.refusal:
            yield from into.add("text", into.text, words(parts))
            for part in parts if isinstance(parts, list) else []:
                if isinstance(part, Mapping):
                    yield from into.add("text", into.refusal, words(part.get("refusal")))
        elif item.get("type") == "reasoning" and not into.reasoning:
            summary = item.get("summary")
            for part in [*(summary if isinstance(summary, list) else []), *(parts if isinstance(parts, list) else [])]:
                if isinstance(part, Mapping):
                    yield from into.add("reasoning", into.reasoning, words(part.get("text")))


def _place(piece: Mapping[str, Any], identity: Any) -> str:
    """The place of an item among the outputs, by its number or its id."""
    return str(piece.get("output_index", identity))


def usage(counted: Mapping[str, Any]) -> Usage | None:
    """The tokens that a server counted, ``None`` where that is no count."""
    sent, said = count(counted, "input_tokens"), count(counted, "output_tokens")
    if sent is None or said is None:
        return None
    return Usage(sent, said, min(count(counted, "input_tokens_details", "cached_tokens") or 0, sent),
                 count(counted, "output_tokens_details", "reasoning_tokens") or 0)
