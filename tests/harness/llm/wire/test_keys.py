"""A key goes to its endpoint and nowhere else."""

from __future__ import annotations

import logging
import os
import pickle
import traceback
from pathlib import Path

import pytest

from harness.agents.llm.endpoints import Endpoint
from harness.agents.llm.ports import Question, TransportError
from harness.agents.llm.redaction import PieceFilter, redacted
from harness.agents.llm.wire.transport import OpenAITransport
from tests.harness.llm.wire.asking import KEY, Asker
from tests.harness.llm.wire.strange_server import HELLO, chunk, joined, refusal, serving, stream, whole


def test_the_key_goes_as_a_bearer_and_little_else_goes(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other-key-of-the-machine")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: header-secret")
    with serving(HELLO) as server:
        Asker(server.url, key=True).ask()
        Asker(server.url).ask()
    first, second = (seen.headers for seen in server.seen)
    assert first.pop("authorization") == f"Bearer {KEY}"
    assert "authorization" not in second
    assert "secret" not in repr([first, second]) and "sk-other" not in repr([first, second])
    assert set(first) <= {"host", "accept", "accept-encoding", "connection", "content-type", "content-length",
                          "user-agent", "x-stainless-raw-response"}


def test_proxies_of_the_environment_see_nothing(monkeypatch):
    with serving(HELLO) as proxy, serving(HELLO) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        Asker(server.url, key=True).ask()
    assert (len(proxy.seen), len(server.seen)) == (0, 1)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(status):
    with serving(HELLO) as elsewhere, serving(whole(status, "", Location=f"{elsewhere.url}/x?token=abc")) as server, \
            pytest.raises(TransportError) as caught:
        Asker(server.url, key=True).ask()
    assert caught.value.kind == "refused"
    assert elsewhere.url in caught.value.text and "abc" not in caught.value.text
    assert elsewhere.seen == []


def test_a_missing_key_is_said_before_anything_is_sent():
    transport = OpenAITransport(Endpoint("e", "http://127.0.0.1:1/v1", "NO_SUCH_KEY"), {})
    with pytest.raises(TransportError, match="NO_SUCH_KEY") as caught:
        transport.ask(Question("m", []))
    assert caught.value.kind == "refused"


@pytest.mark.parametrize("value", ["two words-of-secret", "kéy-of-secret", "line\nof-secret", "null\x00of-secret"])
def test_a_value_that_is_no_key_is_not_shown(value):
    with pytest.raises(TransportError) as caught:
        OpenAITransport(Endpoint("e", "http://127.0.0.1:1/v1", "K"), {"K": value}).ask(Question("m", []))
    assert "of-secret" not in caught.value.text


ECHOES = [
    refusal(401, f"Incorrect API key provided: {KEY}"), refusal(500, f"Authorization: Bearer {KEY}"),
    whole(400, KEY * 50), whole(302, "", Location=f"http://{KEY}.example.org/"),
    stream({"error": {"message": f"key {KEY}"}}), stream("data: " + KEY + "\n\n"),
    stream(chunk(content=KEY), done=False),
]


@pytest.mark.parametrize("play", ECHOES)
def test_an_endpoint_that_says_the_key_back(play, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with serving(play) as server:
        asker = Asker(server.url, key=True, patience_s=1.0)
        try:
            asker.ask()
        except TransportError as error:
            chain = "".join(traceback.format_exception(error)) + repr(error) + repr(error.partial) + repr(vars(error))
            assert KEY not in chain
            assert error.__context__ is None and error.__cause__ is None
            pickle.dumps(error.args)
        else:
            pytest.fail("this is no answer")
    written = "".join(capfd.readouterr())
    assert KEY not in caplog.text and KEY not in written
    assert KEY not in joined(asker.deltas)
    assert KEY not in repr(asker.transport) + repr(asker.endpoint)
    assert server.seen[0].headers["authorization"].endswith(KEY)


def test_an_answer_that_says_the_key_back_in_pieces():
    pieces = [chunk(content=character) for character in f"it is {KEY}, is it not"]
    arguments = {"index": 0, "id": "i", "function": {"name": "look", "arguments": f'{{"k": "{KEY}"}}'}}
    with serving(stream(*pieces, chunk("stop", tool_calls=[arguments], reasoning=KEY, refusal=KEY))) as server:
        asker = Asker(server.url, key=True)
        answer = asker.ask()
    assert KEY not in repr(answer)
    assert answer.text == "it is [redacted], is it not"
    assert KEY not in joined(asker.deltas)
    assert joined(delta for delta in asker.deltas if delta.kind == "text").startswith("it is [redacted], is it not")


def test_the_key_is_in_no_command_line_while_it_is_used():
    lines = []

    def look(handler):
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                lines.append(entry.read_bytes())
            except OSError:
                continue
        HELLO(handler)

    with serving(look) as server:
        Asker(server.url, key=True).ask()
    assert lines and KEY.encode() not in b"".join(lines)
    assert KEY not in "".join(os.environ.values())


@pytest.mark.parametrize("text", [
    f"it is {KEY}.", "it is sentinel-key%2F0123 and more", "Authorization: Bearer abcdefghijk",
    "{'authorization': 'Basic dXNlcjpwYXNz'}", "curl -H 'x-api-key: abcdef12345'", "key sk-abcdefghijklmnop1234",
    "proxy-authorization=token abcdefgh"])
def test_redaction(text):
    clean = redacted(text, [KEY, "sentinel-key/0123"])
    assert "[redacted]" in clean
    for secret in (KEY, "%2F0123", "abcdefghijk", "dXNlcjpwYXNz", "abcdef12345", "sk-abc", "token abcdefgh"):
        assert secret not in clean


def test_placeholders_are_no_secrets():
    assert redacted("none of the EMPTY rows", ["none", "EMPTY", ""]) == "none of the EMPTY rows"


def test_pieces_are_held_back_only_while_they_may_become_a_key():
    pieces = PieceFilter([KEY])
    assert pieces.feed("hello sen") == "hello "
    assert pieces.feed("se") == "sen"
    assert pieces.feed(" " + KEY[:10]) == "se "
    assert pieces.feed(KEY[10:]) == "[redacted]"
    assert pieces.feed("end s") == "end "
    assert pieces.rest() == "s"
