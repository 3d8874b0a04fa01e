"""A server that is out for harm: keys said back where nobody looks, counts that are not, answers that fill a memory."""

from __future__ import annotations

import json

import pytest

from harness.agents.llm.ports import TransportError
from harness.agents.llm.redaction import without
from harness.agents.llm.wire.retry import Patience
from harness.agents.llm.wire.sse import LONGEST_EVENT
from tests.harness.llm.wire.asking import KEY, Asker
from tests.harness.llm.wire.strange_server import chunk, serving, stream, whole


def call_of(arguments: str, identity: str = "c1") -> dict[str, object]:
    return {"index": 0, "id": identity, "type": "function", "function": {"name": "give_up", "arguments": arguments}}


ESCAPED = "".join(f"\\u{ord(character):04x}" for character in KEY)


@pytest.mark.parametrize("pieces", [
    [chunk(tool_calls=[call_of("{}", KEY)]), chunk("tool_calls")],
    [chunk(content="well"), chunk(f"stop {KEY}")],
    [chunk(tool_calls=[call_of(json.dumps({"reason": "x"}).replace("x", ESCAPED))]), chunk("tool_calls")],
    [chunk(content=ESCAPED), chunk("stop")],
    [chunk(reasoning_content=KEY, content="ok"), chunk("stop")],
], ids=["id", "finish", "escaped arguments", "escaped text", "thoughts"])
def test_no_field_of_an_answer_has_the_key_in_any_spelling(pieces):
    with serving(stream(*pieces)) as server:
        answer = Asker(server.url, key=True).ask()
    said = repr(answer)
    assert KEY not in said and ESCAPED not in said and without(json.dumps(said), [KEY]) == json.dumps(said)
    assert "[redacted]" in said


ZEROS = {"prompt_tokens": 0, "completion_tokens": 0}


@pytest.mark.parametrize("usage", [
    ZEROS, {"prompt_tokens": 0, "completion_tokens": 5}, {"prompt_tokens": 5, "completion_tokens": 0},
    {}, {"prompt_tokens": -9, "completion_tokens": 4}, {"prompt_tokens": "7", "completion_tokens": "4"},
    {"prompt_tokens": None, "completion_tokens": None}, {"prompt_tokens": True, "completion_tokens": 1},
    {"prompt_tokens": 1e300, "completion_tokens": 1}, {"prompt_tokens": [1], "completion_tokens": {}}, "many",
])
def test_an_answer_is_never_free(usage):
    """A budget of tokens or money would never end where an endpoint counts nothing."""
    pieces = [chunk(content="word " * 50), chunk("stop", usage=usage)]
    with serving(stream(*pieces)) as server:
        answer = Asker(server.url).ask(messages=[{"role": "user", "content": "question " * 50}])
    assert answer.usage.input > 50 and answer.usage.output > 50 and answer.usage.estimated


def test_a_count_of_not_a_number_is_no_json_and_no_answer():
    bad = 'data: {"choices": [], "usage": {"prompt_tokens": NaN, "completion_tokens": Infinity}}\n\n'
    with serving(stream(chunk(content="word " * 50), chunk("stop"), bad)) as server:
        try:
            usage = Asker(server.url, patience_s=0.0).ask().usage
        except TransportError as error:
            assert error.partial is not None
            usage = error.partial.usage
    assert 0 < usage.total < 10_000


def test_a_document_that_would_fill_the_memory_is_not_read_to_its_end():
    """A quarter of a gigabyte of empty lists takes twenty times that as objects."""
    body = '{"choices": [], "x": [' + "[]," * (LONGEST_EVENT // 3) + "[]]}"
    with serving(whole(200, body)) as server, pytest.raises(TransportError) as caught:
        Asker(server.url, patience_s=0.0).ask()
    assert "larger than any may be" in caught.value.text and caught.value.kind in ("broken", "unavailable")


@pytest.mark.parametrize("after", ["1000000000", "1e9", "999999999999999999999", "-5", "NaN", "soon",
                                   "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_no_wait_that_an_endpoint_asks_for_holds_anybody(after):
    with serving(whole(429, {"error": {"message": "slow down"}}, Retry_After=after)) as server, \
            pytest.raises(TransportError) as caught:
        Asker(server.url, patience_s=0.5, patience=Patience).ask()
    assert caught.value.kind == "unavailable" and caught.value.retries <= 2
