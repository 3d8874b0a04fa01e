"""Robust statistics and the small decisions of a timing session."""

from __future__ import annotations

import itertools
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation.timing.rings import LEAST_SLOTS, MOST_RING_BYTES, MOST_SLOTS, hot_slots, ring_slots
from harness.evaluation.timing.session import balanced_orders, draw_calls, mean_calls
from harness.evaluation.timing.statistics import median, quantile, resampled, robust_cv

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(numbers)
def test_median_agrees_with_the_standard_library(values):
    assert median(values) == pytest.approx(statistics.median(values), abs=1e-6)


@given(numbers, st.floats(0, 1))
def test_quantiles_mirror_under_negation_and_stay_inside(values, share):
    assert quantile([-v for v in values], 1 - share) == pytest.approx(-quantile(values, share), abs=1e-6)
    assert min(values) - 1e-6 <= quantile(values, share) <= max(values) + 1e-6


def test_no_values_is_an_error():
    with pytest.raises(ValueError, match="no values"):
        median([])


def test_robust_cv_ignores_one_outlier():
    steady = [100.0 + 0.1 * i for i in range(20)]
    assert robust_cv([*steady, 1e6]) < 0.02
    assert robust_cv([5.0] * 7) == 0.0


def test_resampling_is_repeatable_and_brackets_the_mean():
    source = random.Random(1)
    values = [source.gauss(10, 1) for _ in range(50)]

    def draw(source):
        return median(source.choices(values, k=len(values)))

    low, high = resampled(draw, 7)
    assert (low, high) == resampled(draw, 7)
    assert low < median(values) < high


@given(st.integers(1, 1 << 30), st.integers(0, 1 << 28))
def test_rings_leave_the_caches_within_bounds(slot_bytes, cache):
    slots = ring_slots(slot_bytes, cache)
    assert 1 <= slots <= MOST_SLOTS
    assert slots == 1 or slots * slot_bytes <= MOST_RING_BYTES
    if slots < min(MOST_SLOTS, MOST_RING_BYTES // slot_bytes):
        assert slots >= LEAST_SLOTS
        assert slots * slot_bytes >= 3 * cache


@given(st.integers(0, 1 << 30), st.floats(1, 40), st.integers(1, 32))
def test_call_counts_stay_in_the_ring(seed, mean, most):
    assert 1 <= draw_calls(random.Random(seed), min(mean, most), most) <= most


def test_call_counts_vary():
    source = random.Random(2)
    assert len({draw_calls(source, 12, 32) for _ in range(50)}) > 3


@given(st.integers(1, 1 << 30), st.integers(1, 1 << 29), st.integers(1, 64))
def test_hot_slots_leave_room_in_the_last_level_cache(slot_bytes, cache, slots):
    hot = hot_slots(slot_bytes, cache, slots)
    assert 1 <= hot <= slots
    assert hot == 1 or hot * slot_bytes <= cache / 2


@given(st.lists(st.floats(1e-7, 1.0), min_size=1, max_size=4), st.integers(1, 64))
def test_the_slowest_side_decides_how_many_calls_a_sample_has(latest, slots):
    calls = mean_calls(latest, slots)
    assert 1 <= calls <= slots
    assert mean_calls([*latest, 1.0], slots) == 1
    assert mean_calls([value / 2 for value in latest], slots) >= calls


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 6))
def test_orders_put_everybody_before_everybody_else_equally_often(seed, sides, halves):
    names = [f"s{number}" for number in range(sides)]
    orders = balanced_orders(random.Random(seed), names, 2 * halves)
    assert len(orders) == 2 * halves
    assert all(sorted(order) == names for order in orders)
    for one, other in itertools.permutations(names, 2):
        assert sum(order.index(one) < order.index(other) for order in orders) == halves


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_a_full_set_of_orders_puts_everybody_everywhere_equally_often(seed, sides):
    names = [f"s{number}" for number in range(sides)]
    orders = balanced_orders(random.Random(seed), names, 2 * sides)
    assert {(name, at): sum(order[at] == name for order in orders) for name in names for at in range(sides)} == {
        (name, at): 2 for name in names for at in range(sides)}


def test_orders_differ_from_round_to_round():
    source = random.Random(1)
    assert len({str(balanced_orders(source, ["a", "b", "c"], 8)) for _ in range(20)}) > 15
