"""Autotune searches declared values only, finds the best of an easy space, and stops when nothing is left."""

from __future__ import annotations

import ast

import pytest

from harness.agents.autotune.space import values_of
from harness.agents.playbook import edit
from harness.agents.registry import make_agent
from harness.campaign.local import run_campaign
from harness.campaign.start import start_state
from harness.domain.goal import AgentChoice, Budget, Goal
from harness.domain.vocabulary import Backend, Tier
from harness.operators.base import Tunable
from tests.harness.campaign.fake_evaluator import FakeEvaluator


def _block(source: str) -> float:
    value = edit.params(source)["BLOCK"]
    return value if isinstance(value, int) else sum(value.values()) / len(value)


def _valley(source: str) -> float:
    """Fastest at BLOCK 128, ten per cent slower for every factor of two away from it."""
    size, steps = _block(source), 0.0
    while size < 128:
        size, steps = size * 2, steps + 1
    while size > 128:
        size, steps = size / 2, steps + 1
    return 100.0 * 1.1**steps


def _search(strategy: str, rounds: int, backend: Backend = Backend.NUMBA) -> tuple[object, FakeEvaluator]:
    goal = Goal("rms_norm", backend, "cpu-test-1t", "llm", grant=Tier.LIGHT,
                agent=AgentChoice("autotune", strategy=strategy), budget=Budget(rounds))
    evaluator = FakeEvaluator(_valley)
    return run_campaign(start_state(goal, attended=False), make_agent(goal.agent), evaluator), evaluator


@pytest.mark.parametrize("strategy", ["halving", "exhaustive"])
def test_the_best_value_of_a_valley_is_found(strategy: str) -> None:
    state, _ = _search(strategy, 20)
    assert _block(state.incumbent.kernel.source) == 128  # type: ignore[attr-defined]


def test_halving_needs_fewer_evaluations_than_the_grid_for_the_best_value() -> None:
    def until_best(strategy: str) -> int:
        _, evaluator = _search(strategy, 30)
        blocks = [_block(request.candidate.source) for request in evaluator.requests]
        return blocks.index(128)

    assert until_best("halving") <= until_best("exhaustive")


def test_no_point_is_evaluated_twice_and_the_search_ends() -> None:
    state, evaluator = _search("exhaustive", 100)
    sources = [request.candidate.source for request in evaluator.requests]
    assert len(set(sources)) == len(sources) == 16 and state.code == "gave_up"  # type: ignore[attr-defined]
    for source in sources:
        assert ast.dump(ast.parse(source).body[-1]) == ast.dump(ast.parse(sources[0]).body[-1])  # only PARAMS differ


def test_grids_are_bounded_and_keep_the_declared_kind() -> None:
    assert values_of(Tunable("A", (Backend.NUMBA,), 4, 64, power_of_two=True)) == (4, 8, 16, 32, 64)
    assert values_of(Tunable("A", (Backend.NUMBA,), 1, 3)) == (1, 2, 3)
    assert len(values_of(Tunable("A", (Backend.NUMBA,), 1, 1000))) <= 16
    assert values_of(Tunable("A", (Backend.NUMBA,), choices=("x", "y"))) == ("x", "y")
