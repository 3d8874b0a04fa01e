"""Figures asked for, and geometric means: reached, not reached, or not measured."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.peers import Row, Side
from harness.domain.report import BestPair, ReportOperator
from harness.domain.verdict import Ratio
from harness.report.reach import HARDWARE, TARGETS, figures_of, means_of


def ours(operator: str, shape: str, us: float, name: str = "playbook", gbps: float = 100.0) -> Row:
    return Row(operator, shape, "bfloat16", Side.OURS, name, median_us=us, gbps=gbps)


def operator(name: str, *rows: Row, best: tuple[BestPair, ...] = ()) -> ReportOperator:
    return ReportOperator(name, "1", name, "bfloat16", rows=rows, best=best)


def pair(shape: str, ratio: float) -> BestPair:
    return BestPair(shape, "Liger", 100.0 * ratio, "playbook", 100.0, Ratio(ratio, ratio, ratio))


def figure(found: tuple, name: str, shape: str):
    return next(one for one in found if (one.operator, one.shape) == (name, shape))


@pytest.mark.parametrize(("us", "reached"), [(65.9, True), (66.0, True), (66.1, False)])
def test_a_time_is_held_against_its_figure(us: float, reached: bool) -> None:
    rows = (ours("softmax", "8192x8192", 200.0, "baseline"), ours("softmax", "8192x8192", us))
    found = figure(figures_of([operator("softmax", *rows)], HARDWARE, 4200.0), "softmax", "8192x8192")
    assert (found.measured, found.reached) == (us, reached)


def test_libraries_and_the_native_control_are_not_ours() -> None:
    rows = (Row("softmax", "8192x8192", "bfloat16", Side.PEER, "Liger", median_us=1.0),
            Row("softmax", "8192x8192", "bfloat16", Side.CONTROL, "baseline", median_us=1.0))
    found = figure(figures_of([operator("softmax", *rows)], HARDWARE, None), "softmax", "8192x8192")
    assert found.measured is None and found.reached is None and found.text == "not measured"


@pytest.mark.parametrize(("gbps", "reached"), [(3900.0, True), (3700.0, False)])
def test_rope_is_held_against_the_measured_copy_roof(gbps: float, reached: bool) -> None:
    label = "B4 S4096 H32/8 D128"
    rope = [operator("rope", ours("rope", label, 50.0, gbps=gbps))]
    assert figure(figures_of(rope, HARDWARE, 4200.0), "rope", label).reached is reached
    assert figure(figures_of(rope, HARDWARE, None), "rope", label).reached is None


def test_a_baseline_before_any_campaign_is_shown_and_not_held_against_the_figure() -> None:
    rows = (ours("softmax", "8192x8192", 200.0, "baseline"),)
    found = figure(figures_of([operator("softmax", *rows)], HARDWARE, 4200.0), "softmax", "8192x8192")
    assert (found.measured, found.reached) == (200.0, None) and "no campaign ran" in found.text


def test_other_hardware_has_no_figures() -> None:
    assert figures_of([operator("softmax", ours("softmax", "8192x8192", 1.0))], "nvidia-h100", 1.0) == ()
    assert means_of([operator("softmax", best=(pair("8192x8192", 2.0),))], "nvidia-h100")[0].reach is None


def test_the_mean_over_the_figures_is_reached_only_where_all_were_measured() -> None:
    some = [operator("softmax", best=(pair("8192x8192", 2.0), pair("32x128256", 50.0)))]
    mean = means_of(some, HARDWARE)[0]
    assert (mean.shapes, mean.ratio, mean.reached) == (1, pytest.approx(2.0), None)
    names = {target.operator for target in TARGETS}
    everything = [operator(name, best=tuple(pair(t.shape, 1.5) for t in TARGETS if t.operator == name))
                  for name in names]
    whole = means_of(everything, HARDWARE)[0]
    assert (whole.shapes, whole.ratio, whole.reached) == (len(TARGETS), pytest.approx(1.5), True)


def test_agents_are_compared_shape_by_shape_from_the_same_session() -> None:
    rows = [ours("decode_attention", shape, us, name) for shape, times in
            {"a": (90.0, 60.0, 30.0), "b": (80.0, 40.0, 40.0)}.items()
            for name, us in zip(("baseline", "autotune", "playbook"), times, strict=True)]
    means = {mean.name: mean for mean in means_of([operator("decode_attention", *rows)], HARDWARE)}
    assert means["decode_attention: baseline over playbook"].ratio == pytest.approx(math.sqrt(3 * 2))
    assert means["decode_attention: baseline over playbook"].reached is False
    assert means["decode_attention: autotune over playbook"].ratio == pytest.approx(math.sqrt(2))


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=6))
def test_a_geometric_mean_lies_between_its_ratios_and_turns_over(ratios: list[float]) -> None:
    def mean(values: list[float]) -> float:
        found = means_of([operator("softmax", best=tuple(pair(str(i), v) for i, v in enumerate(values)))], "other")[0]
        assert found.ratio is not None
        return found.ratio

    assert min(ratios) * 0.999999 <= mean(ratios) <= max(ratios) * 1.000001
    assert mean([1 / value for value in ratios]) == pytest.approx(1 / mean(ratios))


def test_every_figure_names_a_shape_that_its_operator_is_measured_on() -> None:
    from harness.domain.vocabulary import Backend
    from harness.operators import registry

    known = {(name, point.label) for name in registry.NAMES
             for point in registry.get(name).workloads["llm"].shapes[Backend.TRITON]}
    assert {(t.operator, t.shape) for t in TARGETS if t.operator in registry.NAMES} <= known
