"""One asking of a language model: kept and used again after a kill, stopped, limited, and several samples at a time."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from harness.agents.errors import AgentCancelled, AgentError
from harness.agents.llm.agent import LanguageModel, left_over
from harness.agents.llm.exchange import CUT_OFF
from harness.agents.llm.limits import Limits
from harness.agents.llm.ports import Delta, TransportError
from harness.agents.protocol import AgentContext
from harness.domain.errors import UsageError
from harness.domain.proposal import Hypothesis
from harness.domain.steering import Spent, Steer
from harness.domain.turn import Answer, Usage
from harness.domain.vocabulary import Comparison, Direction
from tests.harness.llm.mind.contexts import CHOICE, IDEAS, begun, block, context, played
from tests.harness.llm.mind.fakes import LOG, Said, Script, Shelf, calls, desk, says, submits
from tests.harness.llm.mind.test_tools import ideas

STATE = played(begun(), (block(32), "h1", Comparison.SLOWER, None))
GIVE_UP = calls(LOG, ("give_up", {"reason": "Nothing within the grant is left."}))
DOWN = TransportError("503", kind="unavailable")


class Killed(BaseException):
    """The process ends here."""


def propose(script: Script, shelf: Shelf, ctx: AgentContext | None = None, **more: Any) -> Any:
    return LanguageModel(desk(script, shelf, **more)).propose(ctx or context(STATE))


def test_a_diagnosis_over_several_turns() -> None:
    script = Script(calls(LOG), calls(("read_profile", {"shape": None}), ("read_source", {"which": "incumbent",
                                                                                          "round": None})),
                    calls(("state_hypotheses", ideas())), calls(submits(block(64), "h1", claimed_gain=0.3)))
    shelf = Shelf()
    proposal = propose(script, shelf, context())
    assert proposal.kind == "candidate" and proposal.hypotheses == IDEAS and proposal.queried_log
    assert [turn.number for turn in shelf.stored(1)] == [1, 2, 3, 4] and shelf.stored(1)[0].attempt == 1
    first, *later = shelf.stored(1)
    assert [message["role"] for message in first.messages] == ["system", "user"]
    assert [message["role"] for message in later[0].messages] == ["assistant", "tool"]
    assert first.cost == pytest.approx(0.0014) and first.currency == "EUR" and first.template.startswith("1:")
    assert proposal.trace["tokens"] == 4400 and proposal.trace["money"] == pytest.approx(0.0056)
    assert [turn.status for turn in shelf.writes] == ["open", "complete"] * 4, "kept before anything is sent"


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_killed_asking_pays_no_complete_turn_twice(at: int) -> None:
    said: list[Said] = [calls(LOG), says("Let me think."), GIVE_UP]
    shelf = Shelf()
    with pytest.raises(Killed):
        propose(Script(*said[:at], Killed()), shelf)
    assert [turn.status for turn in shelf.stored(2)] == ["complete"] * at + ["open"]
    script = Script(*said[at:])
    proposal = propose(script, shelf)
    assert proposal.kind == "give_up" and len(script.questions) == len(said) - at
    turns = shelf.stored(2)
    assert [turn.status for turn in turns] == ["complete"] * at + ["failed"] + ["complete"] * (3 - at)
    assert turns[at].error == CUT_OFF and turns[at].blame == "provider" and {turn.attempt for turn in turns} == {1}
    assert proposal.trace["turns"] == 3 and proposal.trace["tokens"] == 3300, "paid once, counted once"
    again = Script()
    assert propose(again, shelf).trace["tokens"] == 3300 and not again.questions, "a replay asks nobody"


def test_an_outage_goes_on_where_it_stopped() -> None:
    shelf = Shelf()
    with pytest.raises(AgentError) as caught:
        propose(Script(calls(LOG), DOWN), shelf)
    assert caught.value.blame == "provider"
    assert propose(Script(GIVE_UP), shelf).trace["turns"] == 2


def test_another_question_is_another_attempt_and_what_was_paid_before_counts_once() -> None:
    shelf = Shelf()
    with pytest.raises(AgentError):
        propose(Script(calls(LOG), DOWN), shelf)
    steered = context(STATE, steering=(Steer("hint", "ada", "Look at the tail."),))
    proposal = propose(Script(GIVE_UP), shelf, steered)
    assert [turn.attempt for turn in shelf.stored(2)] == [1, 1, 2] and proposal.trace["turns"] == 2
    bounced = context(STATE, bounced=("Too slow.",))
    assert propose(Script(GIVE_UP), shelf, bounced).trace["turns"] == 1, "the second asking was counted then"
    assert (left_over(shelf.stored(2), 2).turns, left_over(shelf.stored(2), 3).turns) == (1, 0)


def test_another_model_is_asked_anew() -> None:
    shelf = Shelf()
    with pytest.raises(Killed):
        propose(Script(calls(LOG), Killed()), shelf)
    script = Script(GIVE_UP)
    propose(script, shelf, context(STATE, agent=replace(CHOICE, model="model-b", effort="high")))
    assert script.questions[0].model == "model-b" and script.questions[0].parameters["effort"] == "high"
    assert len(script.questions[0].messages) == 2


def test_stopping_an_answer_counts_nothing() -> None:
    shelf = Shelf()
    partial = Answer("I th", usage=Usage(1000, 2))
    with pytest.raises(AgentCancelled):
        propose(Script(TransportError("stopped", kind="cancelled", partial=partial)), shelf)
    assert (shelf.stored(2)[0].status, shelf.stored(2)[0].answer) == ("cancelled", partial)
    with pytest.raises(AgentCancelled):
        propose(Script(), Shelf(), cancelled=lambda: True)


@pytest.mark.parametrize(("limits", "said"), [
    (Limits(turns=2), "used the 2 turns"), (Limits(tokens=1500), "2,200 tokens"), (Limits(money=0.002), "cost 0.0028"),
    (Limits(seconds=0.0), "seconds without a proposal"),
])
def test_limits_of_one_asking(limits: Limits, said: str) -> None:
    script = Script(calls(LOG), calls(LOG), calls(LOG))
    with pytest.raises(AgentError, match=said) as caught:
        LanguageModel(desk(script), limits).propose(context(STATE))
    assert caught.value.blame == "model" and caught.value.turns == len(script.questions) < 3


def test_the_campaign_s_budget_narrows_them() -> None:
    budget = replace(STATE.goal.budget, tokens=10_000, turns=30, money=1.0)
    for spent in (Spent(tokens=10_000), Spent(turns=30), Spent(money=1.0), Spent(seconds=1e6)):
        script = Script()
        with pytest.raises(AgentError):
            LanguageModel(desk(script)).propose(context(STATE, budget=budget, spent=spent))
        assert not script.questions, "nothing is asked that could not be paid"


def test_the_model_is_told_when_its_turns_run_out() -> None:
    script = Script(calls(LOG), calls(LOG), GIVE_UP)
    LanguageModel(desk(script), Limits(turns=4)).propose(context(STATE))
    told = [m["content"] for m in script.questions[-1].messages if m["role"] == "user"]
    assert told[1:] == [f"{n} turns left in this asking: call submit_candidate or give_up." for n in (3, 2)]


def test_a_stubborn_model_is_stopped() -> None:
    script = Script(calls(LOG), *[calls(submits(block(32)))] * 9)
    with pytest.raises(AgentError, match=r"6 proposals of this asking were refused.*tried in round 1"):
        propose(script, Shelf())
    assert len(script.questions) == 7


@pytest.mark.parametrize(("usage", "noted"), [
    (Usage(200, 10), True), (Usage(2500, 10), False), (Usage(100, 10, cached=2400), False),
    (Usage(9, 9, estimated=True), False),
])
def test_an_endpoint_that_cuts_questions_short_is_named(usage: Usage, noted: bool) -> None:
    answer = replace(GIVE_UP, usage=usage)
    repairs = propose(Script(answer), Shelf()).trace["samples"][0]["repairs"]
    assert bool(repairs) is noted and (not noted or "200 tokens" in repairs[0])


def test_no_endpoint_or_model_is_nobody_s_round() -> None:
    with pytest.raises(UsageError, match="no endpoint or no model"):
        propose(Script(), Shelf(), context(STATE, agent=replace(CHOICE, model=None)))


def best_of(number: int, **more: Any) -> AgentContext:
    return context(STATE, agent=replace(CHOICE, best_of=number), **more)


def test_samples_are_asked_side_by_side_and_equal_kernels_count_once() -> None:
    idea = Hypothesis("h4", Direction.LAYOUT, "_softmax", "Rows in blocks of eight.", "the roof", 0.1)
    other = replace(idea, direction=Direction.PRECISION, text="Fewer roundings in the sum.")
    meet = threading.Barrier(4, timeout=30)

    def together(answer: Answer) -> Said:
        def said(question: Any) -> Answer:
            meet.wait()  # nobody gets past here unless all four are asked at the same time
            return answer
        return said

    shelf, told = Shelf(), []
    script = Script(by_sample={
        0: [together(calls(LOG, ("state_hypotheses", ideas(idea)))), calls(submits(block(64), "h4"))],
        1: [together(calls(LOG, ("state_hypotheses", ideas(other)), submits(block(128), "h4")))],
        2: [together(calls(LOG, submits("# the same\n" + block(64)), text="done"))],
        3: [together(calls(LOG, ("give_up", {"reason": "I have no further idea."})))],
    })
    proposal = propose(script, shelf, best_of(4), told=told.append)
    assert [one.source for one in (proposal.candidate, *proposal.alternatives)] == [block(64), block(128)]
    assert proposal.candidate.hypothesis == "h4" and proposal.alternatives[0].hypothesis == "h4.2"
    assert [(h.id, h.direction) for h in proposal.hypotheses] == [("h4", "layout"), ("h4.2", "precision")]
    assert proposal.trace["equal_samples"] == 1 and proposal.trace["turns"] == 5
    assert [(turn.sample, turn.number) for turn in shelf.stored(2)] == [(0, 1), (0, 2), (1, 1), (2, 1), (3, 1)]
    assert shelf.threads == {threading.get_ident()}, "turns are kept by the asking thread alone"
    assert told == [Delta("text", "done", sample=2)]


def test_one_failing_sample_takes_nothing_from_the_others() -> None:
    shelf = Shelf()
    script = Script(by_sample={0: [DOWN], 1: [calls(LOG, submits(block(64)))], 2: [says(""), says(""), says("")]})
    proposal = propose(script, shelf, best_of(3))
    assert proposal.candidate.source == block(64) and proposal.alternatives == ()
    with pytest.raises(AgentError) as caught:
        propose(Script(by_sample={0: [DOWN], 1: [says("")] * 3}), Shelf(), best_of(2))
    assert caught.value.blame == "provider"


def test_a_diagnosis_has_one_board_and_so_one_sample() -> None:
    script = Script(calls(LOG, ("state_hypotheses", ideas()), submits(block(64), "h1")))
    assert propose(script, Shelf(), context(agent=replace(CHOICE, best_of=8))).alternatives == ()


def test_a_lost_lease_ends_all_samples() -> None:
    class Lost(Exception):
        pass

    class Gone(Shelf):
        def keep(self, turn: Any) -> None:
            raise Lost("another engine took over")

    with pytest.raises(Lost):
        propose(Script(by_sample={0: [], 1: []}), Gone(), best_of(2))
