"""A kill at every moment of an asking: before and after each turn is written, and in each answer. What was complete is
never asked again, and the proposal is the same."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.agents.llm.agent import LanguageModel
from harness.agents.llm.ports import Delta, Desk, Question
from harness.agents.llm.replay import question_digest
from harness.domain.proposal import Proposal
from harness.domain.turn import Answer, Turn
from harness.domain.vocabulary import Comparison
from tests.harness.llm.mind.contexts import CHOICE, a_goal, begun, block, context, played
from tests.harness.llm.mind.fakes import FACTS, LOG, Shelf, calls, says, submits


class Killed(BaseException):
    """The process ends here."""


class Model:
    """Answers by what it is asked, so that it does not matter which sample comes first. ``dies`` at the n-th answer."""

    def __init__(self, dies: int | None = None) -> None:
        self.asked: list[str] = []
        self._dies, self._lock = dies, threading.Lock()

    def ask(self, question: Question, *, told: Callable[[Delta], None], cancelled: Callable[[], bool]) -> Answer:
        with self._lock:
            self.asked.append(question_digest(question))
            if len(self.asked) - 1 == self._dies:
                raise Killed
        task = str(question.messages[1]["content"])
        sample = next((n for n in range(8) if f"you are number {n + 1}." in task), 0)
        step = sum(message["role"] == "assistant" for message in question.messages)
        return [says(""), calls(LOG), calls(submits(block(2 ** (5 + sample)), f"h{sample + 1}"))][step]


class Fragile(Shelf):
    """A shelf whose process ends at the n-th writing, before or after it is done."""

    def __init__(self, dies: int | None = None, after: bool = False) -> None:
        super().__init__()
        self.dies, self.after = dies, after

    def keep(self, turn: Turn) -> None:
        last = len(self.writes) == self.dies
        if last and not self.after:
            self.dies = None
            raise Killed
        super().keep(turn)
        if last:
            self.dies = None
            raise Killed


def propose(model: Model, shelf: Shelf, samples: int) -> Proposal:
    choice = replace(CHOICE, best_of=samples)
    state = played(begun(a_goal(agent=choice)), (block(1024), "h1", Comparison.SLOWER, None))
    desk = Desk(lambda name: model, shelf, facts=lambda endpoint, name: FACTS)
    return LanguageModel(desk).propose(context(state))


def complete(shelf: Shelf) -> set[str]:
    return {turn.request_digest for turn in shelf.rows.values() if turn.status == "complete"}


@pytest.mark.parametrize("samples", [1, 2])
def test_a_kill_at_any_moment_pays_for_nothing_twice_and_loses_nothing(samples: int) -> None:
    whole, shelf = Model(), Shelf()
    expected = propose(whole, shelf, samples)
    assert expected.candidate is not None and len(expected.alternatives) == samples - 1
    writes, asked = len(shelf.writes), len(whole.asked)
    assert (writes, asked) == (6 * samples, 3 * samples)
    moments = [(Fragile(n, after), Model()) for n, after in itertools.product(range(writes), (False, True))]
    moments += [(Fragile(), Model(dies=n)) for n in range(asked)]
    for broken, model in moments:
        with pytest.raises(Killed):
            propose(model, broken, samples)
        had = complete(broken)
        again = Model()
        made = propose(again, broken, samples)
        assert (made.candidate, made.alternatives) == (expected.candidate, expected.alternatives)
        assert not had & set(again.asked), "a complete turn was asked again"
        assert len(had) + len(again.asked) == asked
        assert all(turn.status in ("complete", "failed") for turn in broken.rows.values())
