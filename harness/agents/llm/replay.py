"""Answers from stored turns instead of a network: a conversation can be played again, read and tested anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from harness.agents.llm.ports import Delta, Question, TransportError
from harness.domain.codec import from_document
from harness.domain.digest import digest_document
from harness.domain.errors import DocumentError
from harness.domain.turn import Answer, Turn


def question_digest(question: Question) -> str:
    """The address of everything that is sent: model, messages, tools and parameters, none of it shortened."""
    return digest_document({
        "model": question.model, "messages": [dict(item) for item in question.messages],
        "tools": [dict(item) for item in question.tools], "parameters": dict(question.parameters)})


def recorded_turns(path: Path) -> tuple[Turn, ...]:
    """The turns of a file with one JSON document a line; of one turn's several lines the last counts. What was cut off
    behind the last end of a line, as by a kill in the middle of writing, is no turn yet.

    Raises:
        DocumentError: a line is no turn; the text names it.
    """
    turns: dict[tuple[int, int, int, int, str], Turn] = {}
    whole, _, _ = path.read_text("utf-8").rpartition("\n")
    for number, line in enumerate(whole.split("\n"), 1):
        if not line.strip():
            continue
        try:
            turn = from_document(json.loads(line), Turn)
        except (ValueError, DocumentError) as error:
            raise DocumentError(f"Line {number} of {path} is no turn of a language model: {error}") from error
        turns[turn.round, turn.attempt, turn.sample, turn.number, turn.request_digest] = turn
    return tuple(turns.values())


class ReplayTransport:
    """Answers each question as it was answered before. A question that was asked several times is answered by its
    turns in order, and by the last of them from then on."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._answers: dict[str, list[Answer]] = {}
        self._given: dict[str, int] = {}
        for turn in turns:
            if turn.status == "complete" and turn.answer is not None:
                self._answers.setdefault(turn.request_digest, []).append(turn.answer)

    def ask(self, question: Question, *, told: Callable[[Delta], None] = lambda delta: None,
            cancelled: Callable[[], bool] = lambda: False) -> Answer:
        """The stored answer, told piece by piece as a live one.

        Raises:
            TransportError: nobody asked this before, or the asking was cancelled.
        """
        if cancelled():
            raise TransportError("The answer was stopped.", kind="cancelled")
        digest = question_digest(question)
        answers = self._answers.get(digest)
        if not answers:
            raise TransportError(
                f"No stored turn answers this question ({digest[:19]}...). A replay goes on only while prompt, tools, "
                "parameters and results are those of the recording; record it anew after a change of any.",
                kind="refused")
        number = self._given.get(digest, 0)
        self._given[digest] = number + 1
        answer = answers[min(number, len(answers) - 1)]
        for delta in _pieces(answer):
            told(delta)
        return answer


def _pieces(answer: Answer) -> Iterable[Delta]:
    if answer.reasoning:
        yield Delta("reasoning", answer.reasoning)
    if answer.text or answer.refusal:
        yield Delta("text", answer.text or answer.refusal)
    for call in answer.calls:
        yield Delta("call", call.name)
        yield Delta("call", call.arguments)
