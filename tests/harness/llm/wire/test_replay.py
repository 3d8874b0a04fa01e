"""Stored turns answer the questions that they answered, and no others."""

from __future__ import annotations

import json

import pytest

from harness.agents.llm.ports import Question, TransportError
from harness.agents.llm.replay import ReplayTransport, question_digest, recorded_turns
from harness.campaign.model_turns import FILE, FileTurns
from harness.domain.codec import to_document
from harness.domain.errors import DocumentError
from harness.domain.turn import Answer, ToolCall, Turn

QUESTION = Question("m", [{"role": "user", "content": "hi"}], [], {"temperature": 0})


def turn(text, question=QUESTION, **changed):
    fields = {"round": 1, "attempt": 0, "number": 0, "endpoint": "e", "model": "m", "template": "1",
              "request_digest": question_digest(question), "messages": (), "status": "complete",
              "answer": Answer(text, calls=(ToolCall("i", "look", "{}"),))}
    return Turn(**fields | changed)


def test_a_question_is_answered_as_it_was_and_told_as_it_comes():
    told = []
    answer = ReplayTransport([turn("hello")]).ask(QUESTION, told=told.append)
    assert answer.text == "hello"
    assert [delta.text for delta in told] == ["hello", "look", "{}"]


def test_the_same_question_again_is_answered_by_the_next_turn():
    replay = ReplayTransport([turn("one"), turn("two", number=1)])
    assert [replay.ask(QUESTION).text for _ in range(3)] == ["one", "two", "two"]


@pytest.mark.parametrize("changed", [{"model": "n"}, {"messages": []}, {"tools": [{"a": 1}]}, {"parameters": {}}])
def test_another_question_is_not_answered(changed):
    other = Question(**{"model": "m", "messages": QUESTION.messages, "tools": [], "parameters": QUESTION.parameters,
                        **changed})
    with pytest.raises(TransportError) as caught:
        ReplayTransport([turn("hello")]).ask(other)
    assert caught.value.kind == "refused"


@pytest.mark.parametrize("status", ["open", "failed", "cancelled"])
def test_turns_that_are_not_complete_answer_nothing(status):
    with pytest.raises(TransportError):
        ReplayTransport([turn("x", status=status)]).ask(QUESTION)


def test_stopping():
    with pytest.raises(TransportError) as caught:
        ReplayTransport([turn("x")]).ask(QUESTION, cancelled=lambda: True)
    assert caught.value.kind == "cancelled"


def test_a_campaign_that_was_killed_while_it_wrote_goes_on(tmp_path):
    FileTurns(tmp_path).keep(turn("one"))
    with (tmp_path / FILE).open("a", encoding="utf-8") as file:
        file.write('{"round": 1, "att')
    again = FileTurns(tmp_path)
    again.keep(turn("two", number=1))
    assert FileTurns(tmp_path).all() == again.all() == (turn("one"), turn("two", number=1))


def test_two_questions_in_one_place_of_a_conversation_are_two_turns(tmp_path):
    other = Question("m", [{"role": "user", "content": "shorter"}])
    turns = FileTurns(tmp_path)
    turns.keep(turn("", status="failed", answer=None))
    turns.keep(turn("hello", other))
    assert len(FileTurns(tmp_path).all()) == 2


def test_a_file_of_turns(tmp_path):
    path = tmp_path / "turns.jsonl"
    lines = [turn("", status="open", answer=None), turn("hello")]
    path.write_text("\n".join(json.dumps(to_document(item)) for item in lines) + "\n\n", "utf-8")
    assert recorded_turns(path) == (turn("hello"),)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"round": 1, "att')
    assert recorded_turns(path) == (turn("hello"),)
    path.write_text('{"round": 1}\n', "utf-8")
    with pytest.raises(DocumentError, match="Line 1"):
        recorded_turns(path)
