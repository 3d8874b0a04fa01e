"""A candidate runs behind the walls its request asks for, or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.domain.goal import AgentChoice
from harness.domain.request import Required
from harness.domain.vocabulary import Backend, Outcome
from harness.engine.actions import EvaluateBaseline
from harness.engine.requests import request_of
from harness.evaluation import sandbox
from harness.evaluation.pipeline import evaluate
from harness.operators import registry
from tests.harness.engine.campaigns import goal, start
from tests.harness.judge.evaluations import make_run


class Opener:
    """A sandbox that proved ``isolation`` and is not to be asked for a process."""

    proved: tuple[str, ...] = ()

    def __init__(self, isolation: int) -> None:
        self.isolation = isolation
        self.asked = 0

    def open(self, **_: object) -> object:
        self.asked += 1
        raise RuntimeError("enough")


@pytest.mark.parametrize(("level", "needed", "started"), [
    (1, 2, False), (0, 2, False), (2, 2, True), (3, 2, True), (0, 0, True), (1, 0, True),
])
def test_a_machine_below_the_level_asked_for_starts_no_candidate(monkeypatch, level, needed, started):
    opener = Opener(level)
    monkeypatch.setattr(sandbox, "opener", lambda mode: opener)
    spec = registry.get("softmax")
    run = make_run(spec, Backend.NUMBA, spec.baseline(Backend.NUMBA), opener)
    verdict = evaluate(replace(run.request, required=Required(isolation=needed)))
    assert (opener.asked > 0) == started
    if not started:
        assert verdict.outcome is Outcome.UNSUPPORTED_HERE
        assert [reason.code for reason in verdict.reasons] == ["isolation"]
        assert f"level {level}" in verdict.reasons[0].text


@pytest.mark.parametrize(("kind", "level"), [("playbook", 0), ("autotune", 0), ("openai", 2)])
def test_only_scripted_agents_may_run_where_few_walls_stand(kind, level):
    spec = registry.get("rms_norm")
    kernel = make_run(spec, Backend.NUMBA, spec.baseline(Backend.NUMBA), None).request.candidate
    state = start(replace(goal(), agent=AgentChoice(kind=kind)))
    assert request_of(state, EvaluateBaseline(kernel), job="1", nonce="n").required.isolation == level
