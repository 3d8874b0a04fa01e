"""The Responses API, and finding out which of the two APIs an endpoint has."""

from __future__ import annotations

import pytest

from harness.agents.llm.ports import TransportError
from harness.domain.turn import ToolCall, Usage
from tests.harness.llm.wire.asking import Asker
from tests.harness.llm.wire.strange_server import HELLO, refusal, serving, stream, whole

TOOL = {"type": "function", "function": {"name": "look", "strict": True, "parameters": {"type": "object"}}}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "i", "name": "look", "arguments": '{"a": 1}'}
COUNTED = {"input_tokens": 9, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 2},
           "output_tokens_details": {"reasoning_tokens": 1}}


def event(kind, **more):
    return {"type": f"response.{kind}", **more}


def over(kind="completed", **more):
    return event(kind, response={"object": "response", "model": "m", "status": kind, "usage": COUNTED, **more})


WHOLE = stream(
    event("created", response={"object": "response", "status": "in_progress"}),
    event("reasoning_summary_text.delta", delta="hm"), event("output_text.delta", delta="hel", output_index=1),
    event("output_text.delta", delta="lo", output_index=1),
    event("output_item.added", output_index=2, item={**CALL, "arguments": ""}),
    event("function_call_arguments.delta", output_index=2, delta='{"a": '),
    event("function_call_arguments.delta", output_index=2, delta="1}"),
    event("output_item.done", output_index=2, item=CALL),
    over(output=[{"type": "message", "content": [{"type": "output_text", "text": "hello"}]}, CALL]), done=False)


def ask(*plays, api="responses", **question):
    with serving(*plays) as server:
        return Asker(server.url, api=api).ask(**question), server


def test_an_answer_in_events():
    answer, server = ask(WHOLE, tools=[TOOL])
    assert (answer.text, answer.reasoning, answer.finish) == ("hello", "hm", "tool_calls")
    assert answer.calls == (ToolCall("i", "look", '{"a": 1}'),)
    assert answer.usage == Usage(9, 4, 2, 1)
    assert server.seen[0].path == "/v1/responses"


def test_an_answer_that_comes_whole():
    document = over(output=[{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}, CALL])["response"]
    answer, _ = ask(whole(200, document))
    assert (answer.text, answer.calls) == ("hi", (ToolCall("i", "look", '{"a": 1}'),))


def test_a_conversation_in_the_form_of_items_and_nothing_stored():
    messages = [{"role": "system", "content": "Be good."}, {"role": "user", "content": "Look."},
                {"role": "assistant", "content": "I look.", "tool_calls": [
                    {"id": "i", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "i", "content": "seen"}]
    _, server = ask(WHOLE, messages=messages, tools=[TOOL],
                    parameters={"effort": "low", "max_tokens": 9,
                                "tool_choice": {"type": "function", "function": {"name": "look"}}})
    body = server.seen[0].body
    assert body["input"] == [
        {"role": "system", "content": "Be good."}, {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "i", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "i", "output": "seen"}]
    assert body["tools"] == [{"type": "function", "name": "look", "strict": True, "parameters": {"type": "object"}}]
    assert (body["reasoning"], body["max_output_tokens"], body["store"]) == ({"effort": "low"}, 9, False)
    assert body["tool_choice"] == {"type": "function", "name": "look"}


@pytest.mark.parametrize(("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")])
def test_an_answer_that_was_cut_short(reason, finish):
    answer, _ = ask(stream(event("output_text.delta", delta="half"),
                           over("incomplete", incomplete_details={"reason": reason}), done=False))
    assert (answer.text, answer.finish) == ("half", finish)


def test_a_refusal():
    answer, _ = ask(stream(event("refusal.delta", delta="no"), over(), done=False))
    assert answer.refusal == "no"


def test_a_response_that_fails_in_its_stream():
    failed = over("failed", error={"code": "server_error", "message": "oops"})
    answer, server = ask(stream(failed, done=False), WHOLE)
    assert (answer.text, len(server.seen)) == ("hello", 2)


def test_a_stream_without_its_last_event_is_cut_off():
    with pytest.raises(TransportError) as caught:
        ask(stream(event("output_text.delta", delta="half")))
    assert caught.value.kind == "broken"


def test_the_effort_is_left_out_where_it_is_refused():
    answer, server = ask(refusal(400, "Unsupported parameter: 'reasoning.effort'", param="reasoning.effort"), WHOLE,
                         parameters={"effort": "low"})
    assert answer.dropped == ("reasoning_effort",)
    assert "reasoning" not in server.seen[1].body


def paths(server):
    return [seen.path.rpartition("/v1/")[2] for seen in server.seen]


@pytest.mark.parametrize("play", [refusal(404, "Not Found"), whole(405, {"detail": "Method Not Allowed"}),
                                  refusal(501, "no"), refusal(400, "odd"), refusal(500, "odd"), whole(200, "{}"),
                                  stream(over(), done=False)])
def test_an_endpoint_without_the_responses_api_is_asked_the_other_way_and_it_is_remembered(play):
    with serving(play, HELLO) as server:
        asker = Asker(server.url, api="auto")
        assert [asker.ask().text, asker.ask().text] == ["hello", "hello"]
    assert paths(server) == ["responses", "chat/completions", "chat/completions"]


def test_an_endpoint_with_the_responses_api_keeps_it():
    with serving(WHOLE) as server:
        asker = Asker(server.url, api="auto")
        asker.ask()
        asker.ask()
    assert paths(server) == ["responses", "responses"]


@pytest.mark.parametrize(("play", "kind"), [(refusal(401, "no key"), "refused"), (refusal(400, "prompt is too long"),
                                                                                 "overflow")])
def test_what_has_nothing_to_do_with_the_api_does_not_change_it(play, kind):
    with serving(play, HELLO) as server, pytest.raises(TransportError) as caught:
        Asker(server.url, api="auto").ask()
    assert caught.value.kind == kind
    assert paths(server) == ["responses"]
