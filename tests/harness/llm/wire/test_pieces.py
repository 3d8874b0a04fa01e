"""However an answer is cut into pieces and whatever JSON it is made of: properties of what puts it together."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agents.llm.redaction import PieceFilter, without
from harness.agents.llm.wire.faults import from_body, from_status
from harness.agents.llm.wire.gather import Nonsense
from harness.agents.llm.wire.openai_chat import ChatPieces
from harness.agents.llm.wire.openai_responses import ResponsePieces
from harness.agents.llm.wire.sse import Events

KEYS = ("choices", "delta", "message", "content", "tool_calls", "function", "name", "arguments", "index", "id", "usage",
        "prompt_tokens", "completion_tokens", "finish_reason", "type", "text", "thinking", "reasoning", "refusal",
        "error", "code", "param", "detail", "loc", "item", "response", "output", "status", "incomplete_details",
        "reason", "summary", "output_index", "call_id", "object", "function_call", "msg")
WORDS = ("response.output_text.delta", "response.output_item.added", "response.output_item.done", "response.completed",
         "response.function_call_arguments.delta", "function_call", "message", "reasoning", "response", "text", "stop")
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-3, 600), st.floats(), st.text(max_size=6),
                   st.sampled_from(WORDS))
JSON = st.recursive(LEAVES, lambda inner: st.one_of(
    st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)), max_leaves=14)
CHOICE = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4)
CHUNK = st.one_of(JSON, st.fixed_dictionaries({"choices": st.lists(CHOICE, max_size=2)}))
ITEM = st.fixed_dictionaries({"type": st.sampled_from(WORDS)}, optional=dict.fromkeys(
    ("id", "call_id", "name", "arguments", "content", "summary"), JSON))
EVENT = st.one_of(JSON, st.fixed_dictionaries({"type": st.sampled_from(WORDS)}, optional={
    "delta": JSON, "item": st.one_of(ITEM, JSON), "output_index": JSON, "item_id": JSON, "response": st.one_of(
        JSON, st.fixed_dictionaries({"output": st.lists(st.one_of(ITEM, JSON), max_size=3)}))}))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([ChatPieces, ResponsePieces]), st.lists(st.one_of(CHUNK, EVENT), max_size=5))
def test_whatever_comes_is_an_answer_that_can_be_stored_or_nonsense(kind, pieces):
    gathering = kind()
    for piece in pieces:
        try:
            list(gathering.feed(piece))
        except Nonsense:
            break
    answer = gathering.gathered.answer()
    texts = [answer.text, answer.reasoning, answer.refusal, answer.finish, answer.model]
    texts += [part for call in answer.calls for part in (call.id, call.name, call.arguments)]
    assert all(isinstance(text, str) and text.encode("utf-8") is not None and "\x00" not in text for text in texts)
    assert len({call.id for call in answer.calls}) == len(answer.calls)
    assert min(answer.usage.input, answer.usage.output, answer.usage.cached, answer.usage.reasoning) >= 0


@settings(max_examples=150, deadline=None)
@given(st.integers(300, 600), JSON, st.booleans())
def test_whatever_an_error_says_it_is_a_fault(status, body, begun):
    sent = ("temperature", "tools", "roles")
    for fault in (from_status(status, {}, body, sent, 0.0), from_body(body, sent, begun)):
        assert fault.text and len(fault.text) < 1000
        assert (fault.cure == "without") == bool(fault.parameter)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(KEYS), st.text(max_size=9), max_size=3), max_size=4), st.data(),
       st.sampled_from(["\n", "\r\n"]))
def test_events_are_the_same_however_the_bytes_are_cut(documents, data, end):
    whole = "".join(f"data: {json.dumps(item, ensure_ascii=False)}{end}{end}" for item in documents)
    stream = (whole + f": comment{end}data: [DONE]{end}{end}").encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=8)))
    events, found = Events(), []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += list(events.feed(stream[start:stop]))
    assert [*found, *events.close()] == [*documents, None]


@settings(max_examples=120, deadline=None)
@given(st.text("sec\n x", max_size=30), st.integers(0, 30), st.lists(st.integers(0, 60), max_size=6))
def test_no_cut_lets_a_secret_through(text, place, cuts):
    secret = "secsecret-9"
    whole = text[:place] + secret + text[place:]
    edges = sorted({min(cut, len(whole)) for cut in cuts})
    pieces = PieceFilter([secret])
    spans = zip([0, *edges], [*edges, len(whole)], strict=True)
    shown = "".join(pieces.feed(whole[start:stop]) for start, stop in spans)
    shown += pieces.rest()
    assert secret not in shown
    assert shown == without(whole, [secret])


@pytest.mark.parametrize("data", [b"data: {\n\n", b"data: " + b"[" * 100_000 + b"\n\n"])
def test_what_is_no_json_is_nonsense(data):
    with pytest.raises(Nonsense):
        list(Events().feed(data))
