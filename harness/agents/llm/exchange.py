"""One conversation's questions and answers, kept. A kept answer to the very same question is used instead of asking
again, so that nothing is paid twice after a kill, and a stored campaign is replayed without a network."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from harness.agents.llm.endpoints import ModelFacts
from harness.agents.llm.limits import Paid
from harness.agents.llm.ports import Delta, Question, Transport, TransportError
from harness.agents.llm.prompt import TEMPLATE
from harness.agents.llm.replay import question_digest
from harness.domain.turn import Answer, Turn

OVERFLOW = "overflow: "
"""How the error of a turn begins whose question was longer than the model's context."""
CUT_OFF = "The process that asked ended before the answer was there; the question was asked again."


@dataclass(slots=True)
class Exchange:
    """Asks for one sample of one asking. ``kept`` are the turns of this sample that are stored already; ``keep`` stores
    one; ``facts`` are the settings' about the model."""

    transport: Transport
    endpoint: str
    facts: ModelFacts | None
    round: int
    attempt: int
    sample: int
    kept: tuple[Turn, ...]
    keep: Callable[[Turn], None]
    told: Callable[[Delta], None]
    cancelled: Callable[[], bool]
    paid: Paid = field(default_factory=Paid)
    _used: int = 0

    def ask(self, question: Question, added: Sequence[Mapping[str, Any]], fault_of: Callable[[Answer], str]) -> Answer:
        """The answer, kept or asked for. ``added`` are the messages since the turn before; ``fault_of`` says why an
        answer is of no use.

        Raises:
            TransportError: no answer came; the turn is kept with the reason. A kept overflow is raised again.
        """
        digest = question_digest(question)
        again = self._again(digest)
        if again is not None:
            if again.answer is None or again.status == "failed":
                raise TransportError(again.error.removeprefix(OVERFLOW), kind="overflow")
            return again.answer
        turn = Turn(self.round, self.attempt, self._next_number(), self.endpoint, question.model, TEMPLATE, digest,
                    tuple(dict(message) for message in added), sample=self.sample, began=datetime.now(UTC).isoformat())
        self.keep(turn)
        began = time.monotonic()
        try:
            answer = self.transport.ask(question, told=self.told, cancelled=self.cancelled)
        except TransportError as error:
            self._close(failed(turn, error), began, error.retries)
            raise
        fault = fault_of(answer)
        self._close(replace(turn, status="complete", answer=answer, error=fault, blame="model" if fault else None),
                    began, answer.retries)
        return answer

    def close_open(self) -> None:
        """Turns that nobody waits for any more: the process that asked ended."""
        closed = [replace(turn, status="failed", blame="provider", error=CUT_OFF) if turn.status == "open" else turn
                  for turn in self.kept]
        for before, turn in zip(self.kept, closed, strict=True):
            if turn is not before:
                self.keep(turn)
        self.kept = tuple(closed)

    def _again(self, digest: str) -> Turn | None:
        """The next kept turn that answers this question."""
        for at in range(self._used, len(self.kept)):
            turn = self.kept[at]
            usable = turn.status == "complete" or (turn.status == "failed" and turn.error.startswith(OVERFLOW))
            if usable and turn.request_digest == digest:
                self._used = at + 1
                self.paid.add(paid_for(turn))
                return turn
        return None

    def _next_number(self) -> int:
        return max((turn.number for turn in self.kept), default=0) + 1

    def _close(self, turn: Turn, began: float, retries: int = 0) -> None:
        price = self.facts.price if self.facts is not None else None
        cost = price.cost(turn.answer.usage) if price is not None and turn.answer is not None else None
        turn = replace(turn, latency_s=round(time.monotonic() - began, 3), retries=retries, cost=cost,
                       currency=price.currency if price is not None else "")
        self.keep(turn)
        self.kept = (*self.kept, turn)
        self._used = len(self.kept)
        self.paid.add(paid_for(turn))


def failed(turn: Turn, error: TransportError) -> Turn:
    """A turn without an answer; what had come in is kept beside the reason."""
    if error.kind == "cancelled":
        return replace(turn, status="cancelled", answer=error.partial, error=error.text)
    mark = OVERFLOW if error.kind == "overflow" else ""
    return replace(turn, status="failed", answer=error.partial, error=mark + error.text, blame=error.blame)


def paid_for(turn: Turn) -> Paid:
    """What a turn cost. A turn counts as one where the model answered, well or badly."""
    usage = turn.answer.usage.total if turn.answer is not None else 0
    answered = turn.status == "complete" or (turn.status == "failed" and turn.blame == "model")
    return Paid(int(answered), usage, turn.cost or 0.0)
