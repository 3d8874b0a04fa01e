"""What the ladders lead to is right: the kernels at their upper ends pass every case of the judge in the sandbox."""

from __future__ import annotations

import pytest

from harness.agents.registry import make_agent
from harness.campaign.local import run_campaign
from harness.campaign.start import start_state
from harness.domain.goal import AgentChoice, Budget, Goal, Stop
from harness.domain.vocabulary import Backend, Outcome, Tier
from harness.operators import registry
from tests.harness.campaign.fake_evaluator import FakeEvaluator
from tests.harness.judge.evaluations import judged_right, make_run

# What marks the kernels that were measured faster, and by how much the fake clock rewards each mark.
WINNERS = {"reassoc": 0.5, "value = _exp": 0.7, "shifted": 0.7, "fours": 0.9, "member": 0.4, "kept": 0.6, "splits": 0.7,
           "_row[": 0.9}
LOSERS = ("prange", "ahead = x", "second = x", "half = cols", "part = np", "scales[", "top = source[0]",
          "fastmath=True")


def _clock(source: str) -> float:
    time = 100.0
    for mark, factor in WINNERS.items():
        time *= factor if mark in source else 1.0
    return time * (2.0 if any(mark in source for mark in LOSERS) else 1.0)


def _end_of_ladder(operator: str, backend: Backend, grant: Tier) -> tuple[str, int]:
    goal = Goal(operator, backend, "cpu-test-1t", "llm", grant=grant, agent=AgentChoice(), budget=Budget(14),
                stop=Stop(plateau_rounds=20, direction_failures=20))
    state = run_campaign(start_state(goal, attended=False), make_agent(goal.agent), FakeEvaluator(_clock))
    return state.incumbent.kernel.source, state.incumbent.round


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("operator", "backend", "grant", "mark"),
    [
        ("rms_norm", Backend.NUMBA, Tier.MEDIUM, "reassoc"),
        ("softmax", Backend.NUMBA, Tier.MEDIUM, "shifted"),
        ("decode_attention", Backend.NUMBA, Tier.MEDIUM, "fours"),
        ("decode_attention", Backend.NUMBA, Tier.HEAVY, "member"),
        ("rms_norm", Backend.TRITON, Tier.HEAVY, "_rms_norm_row["),
        ("softmax", Backend.TRITON, Tier.HEAVY, "_combine_softmax["),
        ("decode_attention", Backend.TRITON, Tier.HEAVY, "splits"),
    ],
)
def test_the_upper_end_of_a_ladder_is_right(operator: str, backend: Backend, grant: Tier, mark: str) -> None:
    from harness.evaluation.sandbox import opener

    source, number = _end_of_ladder(operator, backend, grant)
    assert number > 0 and mark in source
    outcome, reason = judged_right(make_run(registry.get(operator), backend, source, opener))
    assert outcome is Outcome.PASSED, reason
