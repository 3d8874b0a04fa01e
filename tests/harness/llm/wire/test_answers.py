"""What servers answer, as an answer: texts, thoughts, tool calls, reasons, tokens."""

from __future__ import annotations

import pytest

from harness.domain.turn import ToolCall, Usage
from tests.harness.llm.wire.asking import Asker
from tests.harness.llm.wire.strange_server import HELLO, call, chunk, joined, serving, stream, whole

TOOL = {"type": "function", "function": {"name": "look", "strict": True, "parameters": {"type": "object"}}}


def answer_to(*pieces, **options):
    with serving(stream(*pieces, **options)) as server:
        return Asker(server.url).ask(tools=[TOOL])


def test_pieces_are_told_and_put_together_and_tokens_are_the_servers():
    with serving(HELLO) as server:
        asker = Asker(server.url)
        answer = asker.ask()
    assert (answer.text, answer.finish, answer.model) == ("hello", "stop", "m")
    assert answer.usage == Usage(7, 2)
    assert joined(asker.deltas) == "hello"


def test_tokens_are_estimated_where_a_server_counts_none():
    usage = answer_to(chunk("stop", content="x" * 350)).usage
    assert usage.estimated
    assert usage.output == 100
    assert usage.input > 0


@pytest.mark.parametrize("counted", [{"prompt_tokens": -1, "completion_tokens": 2}, {"prompt_tokens": "many"}, {},
                                     {"prompt_tokens": 1e300, "completion_tokens": 1}, {"completion_tokens": True}])
def test_counts_that_are_none_are_estimated(counted):
    assert answer_to(chunk("stop", content="hi", usage=counted)).usage.estimated


def test_cached_and_reasoning_tokens():
    counted = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4},
               "completion_tokens_details": {"reasoning_tokens": 3}}
    assert answer_to(chunk("stop", content="hi", usage=counted)).usage == Usage(10, 5, 4, 3)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_thoughts_of_every_server(field):
    answer = answer_to(chunk(**{field: "hm "}), chunk(**{field: "hm"}), chunk("stop", content="yes"))
    assert (answer.reasoning, answer.text) == ("hm hm", "yes")


def test_thoughts_that_are_sent_in_two_fields_count_once():
    assert answer_to(chunk("stop", reasoning="hm", reasoning_content="hm")).reasoning == "hm"


@pytest.mark.parametrize(("text", "expected"), [
    ("<think>a\nb</think>\n\nyes", ("yes", "a\nb")), ("\n<think>never ends", ("", "never ends")),
    ("no <think>x</think>", ("no <think>x</think>", ""))])
def test_thoughts_between_marks(text, expected):
    answer = answer_to(chunk("length", content=text))
    assert (answer.text, answer.reasoning) == expected


def test_content_in_parts():
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]
    answer = answer_to(chunk("stop", content=parts))
    assert (answer.reasoning, answer.text) == ("hm", "yes")


def test_an_empty_answer_is_passed_on_as_one():
    answer = answer_to(chunk("stop"))
    assert (answer.text, answer.calls, answer.finish) == ("", (), "stop")


def test_a_refusal():
    assert answer_to(chunk(refusal="I "), chunk("stop", refusal="won't")).refusal == "I won't"


@pytest.mark.parametrize(("said", "meant"), [("length", "length"), ("max_tokens", "length"), ("MAX_TOKENS", "length"),
                                             ("eos", "stop"), ("content_filter", "content_filter"), ("odd", "odd")])
def test_reasons_of_other_servers(said, meant):
    assert answer_to(chunk(said, content="x")).finish == meant


def test_parallel_calls_whose_pieces_are_mixed():
    answer = answer_to(
        chunk(tool_calls=[call(0, "look", "", "a"), call(1, "find", "", "b")]),
        chunk(tool_calls=[call(1, arguments='{"y":')]), chunk(tool_calls=[call(0, arguments='{"x": 1}')]),
        chunk("tool_calls", tool_calls=[call(1, arguments=" 2}")]))
    assert answer.calls == (ToolCall("a", "look", '{"x": 1}'), ToolCall("b", "find", '{"y": 2}'))


def test_calls_that_are_all_numbered_zero_are_told_apart_by_id():
    answer = answer_to(chunk("tool_calls", tool_calls=[call(0, "look", "{}", "a"), call(0, "look", "[]", "b")]))
    assert answer.calls == (ToolCall("a", "look", "{}"), ToolCall("b", "look", "[]"))


def test_calls_without_numbers_and_ids():
    answer = answer_to(chunk(tool_calls=[call(None, "look", '{"a"')]), chunk(tool_calls=[call(None, None, ": 1}")]),
                       chunk("tool_calls", tool_calls=[]))
    assert answer.calls == (ToolCall("call_0", "look", '{"a": 1}'),)


def test_a_name_that_comes_with_every_piece():
    answer = answer_to(chunk(tool_calls=[call(0, "look", '{"a"', "i")]),
                       chunk("tool_calls", tool_calls=[call(0, "look", ": 1}", "i")]))
    assert answer.calls == (ToolCall("i", "look", '{"a": 1}'),)


def test_two_calls_never_share_an_id():
    answer = answer_to(chunk("tool_calls", tool_calls=[call(0, "look", "{}", "i"), call(1, "look", "{}", "i")]))
    assert len({item.id for item in answer.calls}) == 2


@pytest.mark.parametrize(("sent", "kept"), [('{"a": ', '{"a": '), ("not json", "not json"), ({"a": 1}, '{"a": 1}'),
                                            ("", ""), (None, "")])
def test_arguments_are_passed_on_as_they_came(sent, kept):
    assert answer_to(chunk("tool_calls", tool_calls=[call(0, "look", sent, "i")])).calls[0].arguments == kept


def test_the_form_before_tools():
    answer = answer_to(chunk(function_call={"name": "look", "arguments": "{"}),
                       chunk("function_call", function_call={"arguments": "}"}))
    assert (answer.calls[0].name, answer.calls[0].arguments, answer.finish) == ("look", "{}", "tool_calls")


def test_an_answer_that_comes_whole_although_a_stream_was_asked_for():
    message = {"role": "assistant", "content": "hi", "tool_calls": [{"id": "i", "function": {"name": "look",
                                                                                            "arguments": "{}"}}]}
    document = {"model": "m", "choices": [{"message": message, "finish_reason": "tool_calls"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    with serving(whole(200, document)) as server:
        answer = Asker(server.url).ask()
    assert (answer.text, answer.calls, answer.usage) == ("hi", (ToolCall("i", "look", "{}"),), Usage(3, 1))


def test_a_stream_without_blank_lines_comments_and_the_last_line_end():
    text = ': comment\r\ndata: {"choices":[{"delta":{"content":"a"}}]}\r\n' \
           'data:{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}'
    assert answer_to(text, done=False).text == "ab"


def test_halves_of_characters_and_nul_can_be_stored():
    answer = answer_to(chunk(content="\ud83d"), chunk(content="\ude00\x00"), chunk("stop", content="\ud83d"))
    assert answer.text == "\U0001f600\ufffd\ufffd"
    assert answer.text.encode("utf-8")


@pytest.mark.parametrize("odd", [[], [None], [3], [{"index": 1, "delta": {"content": "no"}}], "x", None])
def test_choices_that_are_none(odd):
    assert answer_to({"choices": odd}, chunk("stop", content="yes")).text == "yes"


def test_a_parameter_of_none_is_not_sent_and_the_model_gets_its_tools():
    with serving(HELLO) as server:
        Asker(server.url).ask(tools=[TOOL], parameters={"temperature": None, "effort": "low", "max_tokens": 9})
    body = server.seen[0].body
    assert body["tools"] == [TOOL]
    assert (body["reasoning_effort"], body["max_tokens"]) == ("low", 9)
    assert "temperature" not in body
