"""Shape buckets are searched side by side: each ends at its own best value, whatever is best for the others."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agents.autotune.agent import Autotune
from harness.agents.autotune.halving import KEPT, coarse_to_fine, exhaustive, rungs, survivors
from harness.agents.autotune.space import (
    axes_of,
    bucket_of,
    buckets_of,
    grid,
    infeasible,
    point_of,
    sample,
    size_of,
    together,
)
from harness.campaign.local import run_campaign
from harness.campaign.start import start_state
from harness.domain.goal import AgentChoice, Budget, Goal
from harness.domain.request import EvaluationRequest
from harness.domain.verdict import Evidence, Ratio, ShapeTiming, Timing
from harness.domain.vocabulary import Backend, Outcome, Tier
from harness.evaluation.source.tier import classify
from harness.operators import registry
from harness.operators.base import OperatorSpec, ShapePoint
from tests.harness.campaign.fake_evaluator import FakeEvaluator

SPEC = registry.get("rms_norm")
BEST = {"short": 1, "medium": 32, "long": 128}
"""The fastest BLOCK of each bucket."""


class PerShape(FakeEvaluator):
    """A shape takes 10 % longer for every factor of two that its bucket's value is away from the best one."""

    def us(self, source: str, point: ShapePoint) -> float:
        axes = axes_of(SPEC, Backend.NUMBA, source)
        block = dict(point_of(SPEC, source, axes, [point]))["BLOCK"]
        return 100.0 * 1.1 ** abs(math.log2(block / BEST[bucket_of(SPEC, point)]))

    def _ratio(self, request: EvaluationRequest, other: str) -> Ratio:
        points = SPEC.workloads["llm"].shapes[Backend.NUMBA]
        log = sum(p.weight * math.log(self.us(other, p) / self.us(request.candidate.source, p)) for p in points)
        return Ratio(math.exp(log), math.exp(log) * 0.999, math.exp(log) * 1.001, 5)

    def _timing(self, request: EvaluationRequest) -> Timing:
        source = request.candidate.source
        shapes = tuple(ShapeTiming(p.label, p.weight, self.us(source, p), 0.0, 0.0, 0.01)
                       for p in SPEC.workloads["llm"].shapes[Backend.NUMBA])
        return Timing(Evidence.BOUNDED, 0.005, 5, shapes, {str(o.role): self._ratio(request, o.source)
                                                          for o in request.against})


def _searched(strategy: str, rounds: int = 40, **refuse: Outcome) -> tuple[dict[str, int], PerShape]:
    goal = Goal("rms_norm", Backend.NUMBA, "cpu-test-1t", "llm", grant=Tier.LIGHT,
                agent=AgentChoice("autotune", strategy=strategy), budget=Budget(rounds))
    evaluator = PerShape(refuse={f'"BLOCK": {key}}}': outcome for key, outcome in refuse.items()})
    state = run_campaign(start_state(goal, attended=False), Autotune(strategy), evaluator)
    source = state.incumbent.kernel.source
    axes = axes_of(SPEC, Backend.NUMBA, source)
    return {name: dict(point_of(SPEC, source, axes, points))["BLOCK"]
            for name, points in buckets_of(SPEC, Backend.NUMBA, "llm").items()}, evaluator


@pytest.mark.parametrize("strategy", ["halving", "exhaustive"])
def test_every_bucket_gets_its_own_best_value(strategy: str) -> None:
    found, evaluator = _searched(strategy)
    assert (found["medium"], found["long"]) == (BEST["medium"], BEST["long"])
    assert found["short"] <= 2 * BEST["short"]  # a last step worth 10 % of a fifth of the weight is within the margin
    assert len(evaluator.requests) < 3 * 16  # not one search after the other
    final = evaluator.requests[-1].candidate.source
    assert classify(SPEC.baseline(Backend.NUMBA), final, SPEC, Backend.NUMBA).tier is Tier.LIGHT


def test_a_value_that_fails_in_one_candidate_is_tried_alone_before_it_is_given_up() -> None:
    found, evaluator = _searched("exhaustive", 40, **{"32": Outcome.RUNTIME_ERROR})
    assert found["medium"] == 32  # 32 everywhere is refused, 32 in one bucket is not
    sources = [request.candidate.source for request in evaluator.requests]
    assert len(set(sources)) == len(sources)


class Refusing:
    """A planner that rules out large blocks of long rows."""

    def __init__(self) -> None:
        self.asked = 0

    def problems(self, spec: OperatorSpec, workload: str, hardware: str,
                 asked: Sequence[tuple[str, tuple[ShapePoint, ...]]]) -> list[str]:
        self.asked += 1
        found = []
        for source, shapes in asked:
            block = dict(point_of(spec, source, axes_of(spec, Backend.NUMBA, source), shapes))["BLOCK"]
            found.append("it spills" if block > 64 and bucket_of(spec, shapes[0]) == "long" else "")
        return found


def test_what_a_planner_rules_out_costs_no_round() -> None:
    goal = Goal("rms_norm", Backend.NUMBA, "cpu-test-1t", "llm", grant=Tier.LIGHT, agent=AgentChoice("autotune"),
                budget=Budget(40))
    planner, evaluator = Refusing(), PerShape()
    run_campaign(start_state(goal, attended=False), Autotune("exhaustive", planner), evaluator)
    long = next(points for name, points in buckets_of(SPEC, Backend.NUMBA, "llm").items() if name == "long")
    tried = {dict(point_of(SPEC, r.candidate.source, axes_of(SPEC, Backend.NUMBA, r.candidate.source), long))["BLOCK"]
             for r in evaluator.requests}
    assert max(tried) == 64 and 0 < planner.asked < len(evaluator.requests) + 10


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(0, 5))
def test_a_sample_has_the_start_first_and_no_point_twice(count: int, seed: int) -> None:
    spec = registry.get("softmax")
    source = spec.baseline(Backend.TRITON)
    axes = axes_of(spec, Backend.TRITON, source)
    shapes = next(iter(buckets_of(spec, Backend.TRITON, "llm").values()))
    start = point_of(spec, source, axes, shapes)
    points = sample(axes, count, start, seed)
    assert points[0] == start and len(set(points)) == len(points) == min(count, size_of(axes))
    assert set(points) <= set(grid(axes)) and points == sample(axes, count, start, seed)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_points_of_buckets_survive_being_put_together(data: st.DataObject) -> None:
    spec = registry.get("softmax")
    source = spec.baseline(Backend.TRITON)
    axes = axes_of(spec, Backend.TRITON, source)
    buckets = buckets_of(spec, Backend.TRITON, "llm")
    points = {name: data.draw(st.sampled_from(list(grid(axes)))) for name in buckets}
    made = together(spec, source, points)
    assert {name: point_of(spec, made, axes, shapes) for name, shapes in buckets.items()} == points
    if made != source:
        assert classify(source, made, spec, Backend.TRITON).tier in (Tier.NONE, Tier.LIGHT)


def test_arithmetic_rules_out_what_no_block_can_hold() -> None:
    shapes = buckets_of(SPEC, Backend.TRITON, "llm")["long"]
    point = (("BLOCK", 32768), ("num_warps", 1))
    assert "registers" in infeasible(SPEC, Backend.TRITON, point, shapes, "nvidia-h200", "bfloat16", {})
    assert not infeasible(SPEC, Backend.TRITON, (("BLOCK", 1024), ("num_warps", 4)), shapes, None, "bfloat16", {})


@given(st.dictionaries(st.integers(0, 200).map(lambda n: (("A", n),)), st.floats(1, 100), min_size=1, max_size=60),
       st.integers(1, 10))
def test_a_rung_keeps_the_best_quarter(scores: dict[tuple[tuple[str, int]], float], least: int) -> None:
    kept = survivors(scores, least)
    assert len(kept) == min(len(scores), max(least, -(-len(scores) // KEPT)))
    worst = max(scores[point] for point in kept)
    assert all(scores[point] >= worst for point in scores if point not in kept)


def test_rungs_shrink_to_the_least_and_orders_cover_the_grid() -> None:
    assert rungs(1000, (2, 4, 8, 16), 8) == [(1000, 2), (250, 4), (63, 8), (16, 16)]
    assert rungs(5, (2, 4), 8) == [(5, 2)]
    axes = {"A": (1, 2, 4, 8), "B": ("x", "y")}
    start = (("A", 2), ("B", "x"))
    order = list(exhaustive(axes, start))
    assert order[0] == start and len(set(order)) == len(order) == 8
    assert set(coarse_to_fine(axes, start, {})) <= set(order)


def test_an_operator_without_buckets_has_one() -> None:
    spec = dataclasses.replace(SPEC, buckets=None)
    assert list(buckets_of(spec, Backend.NUMBA, "llm")) == [""]
    point = (("BLOCK", 64),)
    assert '"BLOCK": 64' in together(spec, SPEC.baseline(Backend.NUMBA), {"": point})
