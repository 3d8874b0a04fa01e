"""What goes wrong on the way: what heals is asked again, what does not is said at once, nothing waits for ever."""

from __future__ import annotations

import threading
import time

import pytest

from harness.agents.llm.ports import TransportError
from harness.agents.llm.wire.retry import Patience
from tests.harness.llm.wire.asking import Asker
from tests.harness.llm.wire.strange_server import HELLO, chunk, hanging, refusal, serving, stream, whole


def failing(*plays, ask=None, **facts):
    with serving(*plays) as server:
        asker = Asker(server.url, **facts)
        with pytest.raises(TransportError) as caught:
            asker.ask(**(ask or {}))
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    return caught.value, server


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_may_heal_is_asked_again(status):
    with serving(refusal(status, "busy"), refusal(status, "busy"), HELLO) as server:
        answer = Asker(server.url).ask()
    assert (answer.text, answer.retries, len(server.seen)) == ("hello", 2, 3)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 410, 418, 451])
def test_what_does_not_heal_is_asked_once(status):
    error, server = failing(refusal(status, "no such thing"))
    assert (error.kind, error.blame, len(server.seen)) == ("refused", "provider", 1)
    assert str(status) in error.text and "no such thing" in error.text


def test_a_spent_quota_does_not_heal_although_its_status_is_429():
    error, server = failing(refusal(429, "You exceeded your current quota", code="insufficient_quota"))
    assert (error.kind, len(server.seen)) == ("refused", 1)


def test_patience_ends():
    error, server = failing(refusal(503, "loading the model"))
    assert (error.kind, error.retries, len(server.seen)) == ("unavailable", 3, 4)
    assert "loading the model" in error.text


def test_a_wait_beyond_the_patience_is_not_begun():
    error, server = failing(whole(429, {"error": {"message": "slow down"}}, Retry_After="86400"), patience=Patience)
    assert (error.kind, len(server.seen)) == ("unavailable", 1)
    assert "86,400 s" in error.text


def test_retry_after_is_heeded():
    waits = []

    class Listening(Patience):
        def wait_s(self, asked):
            waits.append(asked)
            return 0.0

    with serving(whole(429, {}, Retry_After="7"), whole(429, {}, retry_after_ms="1500"),
                 whole(429, {}, Retry_After="soon"), HELLO) as server:
        assert Asker(server.url, patience=Listening).ask().text == "hello"
    assert waits == [7.0, 1.5, None]


def test_a_wait_can_be_stopped():
    stop = threading.Event()
    with serving(refusal(503, "busy")) as server:
        class Long(Patience):
            def wait_s(self, asked):
                stop.set()
                return 3600.0

        with pytest.raises(TransportError) as caught:
            Asker(server.url, patience=Long).ask(cancelled=stop.is_set)
    assert caught.value.kind == "cancelled"


def test_nobody_there():
    with serving(HELLO) as server:
        pass
    with pytest.raises(TransportError) as caught:
        Asker(server.url).ask()
    assert (caught.value.kind, caught.value.retries) == ("unavailable", 3)


def test_a_stream_that_breaks_off_is_asked_again_and_paid_for():
    with serving(stream(chunk(content="x" * 350), done=False), HELLO) as server:
        answer = Asker(server.url).ask()
    assert (answer.text, len(server.seen)) == ("hello", 2)
    assert answer.usage.estimated
    assert answer.usage.output == 102


def test_a_server_that_hangs_up_before_it_says_anything_is_asked_for_a_whole_answer():
    why = "This model's maximum context length is 8192 tokens, however you requested 24014 tokens"
    error, server = failing(stream(chunk(role="assistant"), done=False), refusal(400, why))
    assert (error.kind, len(server.seen)) == ("overflow", 2)
    assert [seen.body.get("stream", False) for seen in server.seen] == [True, False]


def test_streams_that_always_break_off_are_not_asked_for_ever():
    error, server = failing(stream(chunk(content="half an "), done=False), patience_s=50.0)
    assert (error.kind, error.blame, len(server.seen)) == ("broken", "provider", 3)
    assert error.partial is not None and error.partial.text == "half an "
    assert error.partial.usage.output == 9


@pytest.mark.parametrize("sense", ["data: {\n\n", "data: [1]\n\n", "data: 7\n\n", "data: " + "[" * 30_000 + "\n\n"])
def test_a_stream_of_nonsense(sense):
    error, _ = failing(stream(sense))
    assert error.kind == "broken"


@pytest.mark.parametrize("page", ["<html><body>Welcome</body></html>", "{}", '{"hello": 1}', ""])
def test_a_page_that_is_no_completion(page):
    error, _ = failing(whole(200, page))
    assert error.kind == "broken"


def test_an_error_inside_a_stream_before_anything_was_said_is_waited_out():
    with serving(stream({"error": {"message": "overloaded", "code": 503}}), HELLO) as server:
        assert Asker(server.url).ask().text == "hello"


def test_an_error_in_the_middle_of_a_stream():
    with serving(stream(chunk(content="a"), {"error": {"message": "engine died"}}), HELLO) as server:
        assert Asker(server.url).ask().text == "hello"
    error, _ = failing(stream(chunk(content="a"), {"error": {"message": "bad key", "code": 401}}))
    assert error.kind == "refused"


def test_no_first_piece_in_time():
    error, _ = failing(hanging(), patience_s=0, first_token_s=0.15)
    assert error.kind == "unavailable"
    assert "no answer began within 0.15 s" in error.text


def test_nothing_further_in_time():
    error, _ = failing(hanging(chunk(content="half")), patience_s=0, gap_s=0.6)
    assert error.kind == "broken"
    assert error.partial.text == "half"


def test_a_whole_answer_that_takes_too_long():
    def dripping(handler):
        handler.head()
        while not handler.strange.release.wait(0.02):
            handler.put('data: {"choices": [{"delta": {"content": "."}}]}\n\n')

    error, _ = failing(dripping, patience_s=0, answer_s=1.2, connect_s=0.5)
    assert error.kind == "broken"
    assert set(error.partial.text) == {"."}


def test_stopping_hangs_up_in_the_middle_of_an_answer():
    with serving(hanging(chunk(content="half"))) as server:
        asker = Asker(server.url)
        with pytest.raises(TransportError) as caught:
            asker.ask(cancelled=lambda: bool(asker.deltas))
        assert server.hung_up.wait(60)
    assert caught.value.kind == "cancelled"
    assert caught.value.partial.text == "half"


def test_stopping_before_anything_came():
    def silent(handler):
        handler.strange.release.wait(30)

    begun = time.monotonic()
    with serving(silent) as server:
        with pytest.raises(TransportError) as caught:
            Asker(server.url).ask(cancelled=lambda: bool(server.seen))
        server.release.set()
    assert caught.value.kind == "cancelled"
    assert time.monotonic() - begun < 20


def test_an_answer_without_end_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr("harness.agents.llm.wire.gather.MOST_CHARACTERS", 1000)
    error, _ = failing(stream(*[chunk(content="x" * 100)] * 12))
    assert error.kind == "broken"
    assert "longer than 1,000 characters" in error.text


def test_a_line_without_end(monkeypatch):
    monkeypatch.setattr("harness.agents.llm.wire.sse.LONGEST_EVENT", 1000)
    error, _ = failing(stream("data: " + "x" * 5000))
    assert error.kind == "broken"


def test_an_error_page_without_end(monkeypatch):
    monkeypatch.setattr("harness.agents.llm.wire.client.MOST_ERROR_BYTES", 1000)
    error, _ = failing(whole(500, "x" * 5000))
    assert error.kind in ("broken", "unavailable")
    assert len(error.text) < 1000


def test_a_packed_answer_is_not_unpacked():
    error, _ = failing(whole(200, "x", Content_Encoding="gzip"))
    assert "packed" in error.text


def test_too_many_calls():
    calls = [{"index": number, "id": str(number), "function": {"name": "f"}} for number in range(200)]
    error, _ = failing(stream(chunk(tool_calls=calls)))
    assert "tool calls" in error.text


def test_only_so_many_questions_at_a_time():
    with serving(HELLO) as server:
        def slow(handler):
            time.sleep(0.05)
            HELLO(handler)

        server.plays[:] = [slow]
        asker = Asker(server.url, parallel=2)
        threads = [threading.Thread(target=asker.ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(server.seen) == 6
    assert server.most_open <= 2


def test_who_waits_for_a_place_can_be_stopped():
    with serving(hanging()) as server:
        asker, stop = Asker(server.url, parallel=1), threading.Event()

        def until_stopped():
            with pytest.raises(TransportError):
                asker.ask(cancelled=stop.is_set)

        first = threading.Thread(target=until_stopped)
        first.start()
        while not server.seen:
            time.sleep(0.01)
        with pytest.raises(TransportError) as caught:
            asker.ask(cancelled=lambda: True)
        stop.set()
        first.join(60)
    assert caught.value.kind == "cancelled"
    assert len(server.seen) == 1


def test_a_watcher_that_fails_hangs_up_as_well():
    def broken(delta):
        raise LookupError("the page is gone")

    with serving(hanging(chunk(content="half"))) as server:
        asker = Asker(server.url)
        with pytest.raises(LookupError):
            asker.transport.ask(question(), told=broken, cancelled=lambda: False)
        assert server.hung_up.wait(60)


def question():
    from harness.agents.llm.ports import Question

    return Question("m", [{"role": "user", "content": "hi"}])


def test_a_fault_that_nobody_foresaw_ends_the_question_too(monkeypatch):
    def broken(endpoint, key):
        raise LookupError("something else")

    monkeypatch.setattr("harness.agents.llm.wire.exchange.make_client", broken)
    error, _ = failing(HELLO)
    assert error.kind == "broken" and "LookupError" in error.text


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_dies_does_not_leave_the_asking_one_waiting(monkeypatch):
    async def dies(*_):
        raise SystemError("no thread left")

    monkeypatch.setattr("harness.agents.llm.wire.line.exchange", dies)
    error, _ = failing(HELLO)
    assert error.kind == "broken"
