"""A model that says what a test writes down, and a memory of turns."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from harness.agents.llm.endpoints import ModelFacts, Price
from harness.agents.llm.ports import Delta, Desk, Question, TransportError
from harness.domain.turn import Answer, ToolCall, Turn, Usage

Said = Answer | TransportError | BaseException | Callable[[Question], Answer]
FACTS = ModelFacts("model-a", 32_768, ("low", "medium", "high"), Price(1.0, 0.1, 4.0, "EUR", "2026-11-29"))


class Script:
    """Answers in order, for each sample its own list; notes what it was asked."""

    def __init__(self, *answers: Said, by_sample: Mapping[int, list[Said]] | None = None) -> None:
        self.answers = list(answers)
        self.by_sample = {sample: list(said) for sample, said in (by_sample or {}).items()}
        self.questions: list[Question] = []
        self._lock = threading.Lock()

    def ask(self, question: Question, *, told: Callable[[Delta], None], cancelled: Callable[[], bool]) -> Answer:
        with self._lock:
            self.questions.append(question)
            mine = self.answers
            if self.by_sample:
                task = question.messages[1]["content"]
                mine = next(said for sample, said in self.by_sample.items() if f"you are number {sample + 1}." in task)
            assert mine, "the model was asked once more than the test wrote answers for"
            said = mine.pop(0)
        if isinstance(said, BaseException):
            raise said
        answer = said if isinstance(said, Answer) else said(question)
        if answer.text:
            told(Delta("text", answer.text))
        return answer


class Shelf:
    """Turns in memory, by the thread that keeps them."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, int, int, int, str], Turn] = {}
        self.writes: list[Turn] = []
        self.threads: set[int] = set()

    def stored(self, round: int) -> tuple[Turn, ...]:
        return tuple(self.rows[name] for name in sorted(self.rows) if name[0] == round)

    def keep(self, turn: Turn) -> None:
        self.threads.add(threading.get_ident())
        self.writes.append(turn)
        self.rows[turn.round, turn.attempt, turn.sample, turn.number, turn.request_digest] = turn


def desk(script: Script, shelf: Shelf | None = None, *, facts: ModelFacts | None = FACTS, **more: Any) -> Desk:
    return Desk(lambda name: script, shelf or Shelf(), facts=lambda endpoint, model: facts, **more)


def calls(*named: tuple[str, Any], text: str = "", finish: str = "tool_calls") -> Answer:
    """An answer that calls tools; arguments are JSON values, or text as it is."""
    made = tuple(ToolCall(f"c{n}", name, arguments if isinstance(arguments, str) else json.dumps(arguments))
                 for n, (name, arguments) in enumerate(named))
    return Answer(text, calls=made, finish=finish, usage=Usage(1000, 100), model="model-a")


def says(text: str = "", *, finish: str = "stop", **more: Any) -> Answer:
    return Answer(text, finish=finish, usage=Usage(1000, 100), model="model-a", **more)


LOG = ("query_log", {"direction": None})


def submits(source: str, hypothesis: str = "h2", **changed: Any) -> tuple[str, dict[str, Any]]:
    return "submit_candidate", {"hypothesis": hypothesis, "source": source, "change_summary": "another block",
                                "claimed_gain": None, "retry_of": None, "essential_difference": None, **changed}
