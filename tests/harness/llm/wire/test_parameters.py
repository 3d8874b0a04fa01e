"""Requests that a model or its server refuses in part: the part is left out once, remembered, and told of."""

from __future__ import annotations

import pytest

from harness.agents.llm.ports import TransportError
from tests.harness.llm.wire.asking import Asker
from tests.harness.llm.wire.strange_server import HELLO, chunk, refusal, serving, stream, whole

TOOL = {"type": "function", "function": {"name": "look", "strict": True, "parameters": {"type": "object"}}}
ASKED = {"temperature": 0.2, "effort": "high", "max_tokens": 100, "tool_choice": "auto", "seed": 1}
CONVERSATION = [
    {"role": "system", "content": "Be good."}, {"role": "user", "content": "Look."},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "i", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "i", "content": "seen"},
]


def picky(*names, message="Unsupported parameter: '{name}' is not supported with this model.", status=400, **more):
    """A server that refuses each of the names once it sees it."""
    def play(handler):
        body = handler.strange.seen[-1].body
        name = next((item for item in names if item in body), None)
        (HELLO if name is None else refusal(status, message.format(name=name), **more))(handler)

    return play


@pytest.mark.parametrize(("message", "status"), [
    ("Unsupported parameter: '{name}' is not supported with this model.", 400),
    ("Unsupported value: '{name}' does not support 0.2 with this model. Only the default (1) value is supported.", 400),
    ("{name}: Extra inputs are not permitted", 422), ("Unrecognized request argument supplied: {name}", 400),
    ("unknown field `{name}`, expected one of `model`, `messages`", 422), ("property '{name}' is unsupported", 400),
    ("The model does not support setting {name}", 400), ("{name} must be one of [none]", 400)])
def test_a_refused_parameter_is_left_out_once_and_remembered(message, status):
    with serving(picky("temperature", message=message, status=status)) as server:
        asker = Asker(server.url)
        first, second = asker.ask(parameters=ASKED), asker.ask(parameters=ASKED)
    assert (first.text, first.dropped, second.dropped) == ("hello", ("temperature",), ("temperature",))
    assert ["temperature" in seen.body for seen in server.seen] == [True, False, False]


def test_several_are_left_out_one_after_the_other():
    with serving(picky("temperature", "reasoning_effort", "seed", "stream_options")) as server:
        answer = Asker(server.url).ask(parameters=ASKED, tools=[TOOL])
    assert answer.dropped == ("reasoning_effort", "seed", "temperature")
    assert len(server.seen) == 5


def test_the_machine_readable_names_are_enough():
    with serving(picky("seed", message="no", param="seed")) as server:
        assert Asker(server.url).ask(parameters=ASKED).dropped == ("seed",)
    detail = [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "no"}]
    with serving(whole(422, {"detail": detail}), HELLO) as server:
        assert Asker(server.url).ask(parameters=ASKED).dropped == ("seed",)


def test_the_limit_of_an_answer_takes_its_newer_name_and_goes_only_then():
    text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    with serving(refusal(400, text, param="max_tokens"), HELLO) as server:
        answer = Asker(server.url).ask(parameters={"max_tokens": 9})
    assert server.seen[1].body["max_completion_tokens"] == 9
    assert answer.dropped == ()
    with serving(picky("max_tokens", "max_completion_tokens")) as server:
        assert Asker(server.url).ask(parameters={"max_tokens": 9}).dropped == ("max_tokens",)


def test_room_for_an_answer_that_does_not_fit_beside_this_question_is_not_remembered():
    text = ("'max_tokens' or 'max_completion_tokens' is too large: 100. This model's maximum context length is 128 "
            "tokens and your request has 90 input tokens")

    def small(handler):
        asked = [handler.strange.seen[-1].body.get(name, 0) for name in ("max_tokens", "max_completion_tokens")]
        (refusal(400, text) if max(asked) > 38 else HELLO)(handler)

    with serving(small) as server:
        asker = Asker(server.url)
        assert asker.ask(parameters={"max_tokens": 100}).dropped == ("max_tokens",)
        asker.ask(parameters={"max_tokens": 10})
    assert "max_tokens" in server.seen[-1].body


@pytest.mark.parametrize("text", [
    "registry.example/library/tiny:latest does not support tools", "Tool use is not supported by this model",
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    "This model does not support function calling"])
def test_a_server_without_tools_gets_prose(text):
    def play(handler):
        (refusal(400, text) if "tools" in handler.strange.seen[-1].body else HELLO)(handler)

    with serving(play) as server:
        answer = Asker(server.url).ask(messages=CONVERSATION, tools=[TOOL], parameters={"tool_choice": "auto"})
    assert "tools" in answer.dropped
    body = server.seen[-1].body
    assert not {"tools", "tool_choice"} & set(body)
    assert {message["role"] for message in body["messages"]} == {"system", "user", "assistant"}
    assert "seen" in body["messages"][-1]["content"]


@pytest.mark.parametrize("text", ["System role not supported", "Only user and assistant roles are supported!",
                                  "Conversation roles must alternate user/assistant/user/assistant/..."])
def test_templates_that_know_two_roles(text):
    with serving(refusal(400, text), HELLO) as server:
        Asker(server.url).ask(messages=CONVERSATION)
    assert [message["role"] for message in server.seen[1].body["messages"]] == ["user", "assistant", "user"]
    assert server.seen[1].body["messages"][0]["content"] == "Be good.\n\nLook."


def test_strict_schemas_that_are_unknown():
    with serving(refusal(400, "Unknown parameter: 'tools[0].function.strict'", param="tools[0].function.strict"),
                 HELLO) as server:
        answer = Asker(server.url).ask(tools=[TOOL])
    assert "strict" not in server.seen[1].body["tools"][0]["function"]
    assert answer.dropped == ()


def test_a_server_that_does_not_stream():
    message = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}
    with serving(refusal(400, "stream is not supported"), whole(200, message)) as server:
        assert Asker(server.url).ask().text == "hi"
    assert not server.seen[1].body.get("stream")


def test_a_parameter_that_is_refused_although_it_is_gone_ends():
    with serving(refusal(400, "temperature is not supported")) as server, pytest.raises(TransportError) as caught:
        Asker(server.url).ask(parameters=ASKED)
    assert caught.value.kind == "refused"
    assert len(server.seen) == 2


def test_what_was_left_out_in_vain_is_not_remembered():
    with serving(refusal(400, "temperature is not supported"), refusal(401, "no key"), HELLO) as server:
        asker = Asker(server.url)
        with pytest.raises(TransportError):
            asker.ask(parameters=ASKED)
        assert asker.ask(parameters=ASKED).dropped == ()
    assert ["temperature" in seen.body for seen in server.seen] == [True, False, True]


def test_what_one_model_refuses_another_is_still_asked():
    with serving(refusal(400, "temperature is not supported"), HELLO) as server:
        asker = Asker(server.url)
        asker.ask(parameters=ASKED)
        asker.ask(parameters=ASKED, model="other")
    assert ["temperature" in seen.body for seen in server.seen] == [True, False, True]


@pytest.mark.parametrize(("status", "text"), [
    (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."),
    (400, "the request exceeds the available context size (4096 tokens), try increasing it"),
    (400, "Requested tokens (5210) exceed context window of 2048"),
    (500, "Requested tokens (5210) exceed context window of 2048"),
    (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    (400, "The input (70000 tokens) is longer than the model's context length (65536 tokens)."),
    (400, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"),
    (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    (400, "the input length exceeds the context length"),
    (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"),
    (400, "Please reduce the length of the messages or completion."),
    (413, "Request too large: too many tokens"),
    (400, "too many tokens: total number of tokens in the prompt cannot exceed 4081"),
    (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
    (400, "Input is too long for requested model. prompt is too long"),
])
def test_a_question_that_is_too_long_in_the_words_of_many_servers(status, text):
    with serving(refusal(status, text)) as server, pytest.raises(TransportError) as caught:
        Asker(server.url).ask(parameters={"max_tokens": 9})
    assert (caught.value.kind, caught.value.blame, len(server.seen)) == ("overflow", "model", 1)


@pytest.mark.parametrize("more", [{"code": "context_length_exceeded"}, {"type": "exceed_context_size_error"}])
def test_a_question_that_is_too_long_by_code(more):
    with serving(refusal(400, "no", **more)) as server, pytest.raises(TransportError) as caught:
        Asker(server.url).ask()
    assert caught.value.kind == "overflow"


def test_a_question_that_is_too_long_in_a_stream():
    with serving(stream({"error": {"message": "prompt is too long", "code": "context_length_exceeded"}})) as server, \
            pytest.raises(TransportError) as caught:
        Asker(server.url).ask()
    assert caught.value.kind == "overflow"


def test_a_filter_is_an_answer_of_its_own():
    with serving(refusal(400, "The response was filtered due to the prompt", code="content_filter")) as server:
        answer = Asker(server.url).ask()
    assert (answer.finish, answer.text) == ("content_filter", "")
    assert "filtered" in answer.refusal


def test_a_model_that_stops_at_its_limit_says_so():
    with serving(stream(chunk("length", content="def run("))) as server:
        assert Asker(server.url).ask().finish == "length"
