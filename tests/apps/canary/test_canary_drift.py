"""Whether a device drifts: pure figures in, a judgement out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.campaigns.canary.drift import Figures, drifting, judge, reference_of
from apps.campaigns.canary.due import AGAIN_AFTER_S, DRIFT_EVERY_S, Situation, due

WEIGHTS = {"a": 0.75, "b": 0.25}


def reading(factor: float = 1.0, noise: float = 0.004) -> Figures:
    return Figures({"a": 100.0 * factor, "b": 20.0 * factor}, WEIGHTS, noise)


def test_the_reference_is_the_median_of_the_first_three_and_none_before() -> None:
    assert reference_of([reading(), reading()]) is None
    found = reference_of([reading(1.0), reading(1.2), reading(1.01), reading(9.0)])
    assert found is not None and found.medians == {"a": 101.0, "b": 20.2}


@pytest.mark.parametrize(("factor", "noise", "side"), [
    (1.0, 0.0, 0), (1.019, 0.0, 0), (1.021, 0.0, 1), (0.98, 0.0, -1), (0.985, 0.0, 0),
    (1.05, 0.02, 0), (1.07, 0.02, 1), (1.03, 0.009, 1), (1.03, 0.011, 0),
])
def test_beyond_is_more_than_two_per_cent_and_more_than_three_times_the_noise(
    factor: float, noise: float, side: int
) -> None:
    found = judge(reading(factor, noise), reading(1.0, 0.0))
    assert found.side == side
    assert found.shift == pytest.approx(factor)
    assert found.margin == max(0.02, 3 * noise)


def test_the_noise_of_the_reference_counts_too_and_shapes_weigh_what_they_weigh() -> None:
    assert judge(reading(1.05, 0.0), reading(1.0, 0.02)).side == 0
    one = Figures({"a": 100.0, "b": 20.0 * 1.1}, WEIGHTS, 0.0)
    assert judge(one, reading(noise=0.0)).shift == pytest.approx(1.1**0.25)
    with pytest.raises(ValueError, match="no shape in common"):
        judge(Figures({"z": 1.0}, {"z": 1.0}, 0.0), reading())


@given(st.floats(0.5, 2.0), st.floats(0.0, 0.2))
def test_slower_and_faster_are_judged_alike(factor: float, noise: float) -> None:
    there, back = judge(reading(factor, noise), reading()), judge(reading(1.0, noise), reading(factor))
    assert there.side == -back.side
    assert there.shift * back.shift == pytest.approx(1.0)


def test_two_in_a_row_on_one_side_open_it_two_within_end_it() -> None:
    assert not drifting([1], before=False)
    assert not drifting([0, 1], before=False)
    assert not drifting([1, -1], before=False)  # noise, not a direction
    assert drifting([0, 1, 1], before=False) and drifting([-1, -1], before=False)
    assert drifting([1, 1, 0], before=True) and drifting([1, 0, 1], before=True)
    assert not drifting([1, 0, 0], before=True)


@given(st.lists(st.sampled_from([-1, 0, 1]), max_size=30))
def test_nothing_opens_without_two_equal_ones_and_nothing_ends_without_two_noughts(sides: list[int]) -> None:
    before = False
    for count in range(1, len(sides) + 1):
        now = drifting(sides[:count], before=before)
        if now != before:
            pair = sides[count - 2 : count]
            assert pair == [0, 0] if before else pair in ([1, 1], [-1, -1])
        before = now


CALM = Situation(every=25, readings=3, evaluations=3, suspect=False, drifting=False, restarted=False, idle=False,
                 since_order_s=3600.0)


@pytest.mark.parametrize(("changes", "urgent"), [
    ({}, None), ({"evaluations": 25}, True), ({"evaluations": 24}, None), ({"every": 0, "evaluations": 99}, None),
    ({"evaluations": 99, "since_order_s": AGAIN_AFTER_S - 1}, None),
    ({"suspect": True}, True), ({"drifting": True}, True),
    ({"drifting": True, "evaluations": 99, "since_order_s": DRIFT_EVERY_S - 1}, None),
    ({"restarted": True}, None), ({"restarted": True, "idle": True}, False),
    ({"idle": True}, None), ({"idle": True, "readings": 2}, False),
    ({"idle": True, "readings": 0, "restarted": True, "since_order_s": None}, False),
])
def test_when_it_is_timed_again(changes: dict[str, object], urgent: bool | None) -> None:
    order = due(replace(CALM, **changes))  # type: ignore[arg-type]
    assert (None if order is None else order.urgent) is urgent
