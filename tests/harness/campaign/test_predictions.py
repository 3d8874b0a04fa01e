"""Prediction against measurement: rows of a log, their errors and judgements, the calibration of groups."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agents.registry import make_agent
from harness.campaign.local import run_campaign
from harness.campaign.predicted import predicted_html, predicted_lines, stated_predictions
from harness.campaign.report import report
from harness.campaign.start import start_state
from harness.domain.goal import AgentChoice, Budget, Goal
from harness.domain.log import LogEntry
from harness.domain.prediction import calibration, calibration_by, in_words, predictions
from harness.domain.verdict import Ratio
from harness.domain.vocabulary import Backend, Conclusion, Outcome, Tier
from tests.harness.campaign.fake_evaluator import FakeEvaluator

RATIOS = st.floats(0.05, 20.0)
GAINS = st.floats(-0.5, 5.0)


def entry(number: int, expected: float | None, ratio: float | None, direction: str = "fusion:_k") -> LogEntry:
    change = None if ratio is None else Ratio(ratio, ratio * 0.99, ratio * 1.01)
    return LogEntry(number, direction, "why", expected, f"step {number}", Tier.MEDIUM, Outcome.PASSED, change, True,
                    Conclusion.CONFIRMED)


@given(st.lists(st.tuples(st.none() | GAINS, st.none() | RATIOS), max_size=12))
def test_every_stated_gain_has_a_row_and_every_measured_one_an_error(found: list[tuple[float | None, float | None]]
                                                                     ) -> None:
    entries = [entry(number, *pair) for number, pair in enumerate(found)]
    rows = predictions(entries)
    assert [row.round for row in rows] == [e.round for e in entries if e.expected_gain is not None]
    for row in rows:
        ratio = found[row.round][1]
        assert (row.error is None) == (row.measured is None) == (ratio is None) == (row.judgement == "not timed")
        if row.error is not None and ratio is not None:
            assert row.error == pytest.approx(math.log(ratio / (1 + row.predicted)))
    summary = calibration(rows)
    assert summary.n + summary.untimed == len(rows)
    assert (summary.mean_absolute_error is None) == (summary.n == 0)
    if summary.mean_absolute_error is not None and summary.mean_error is not None:
        assert abs(summary.mean_error) <= summary.mean_absolute_error + 1e-12


@pytest.mark.parametrize(("expected", "ratio", "judged"), [
    (-1.0, 1.1, "promised too little"), (-3.0, 0.005, "hit"), (0.5, 0.0, "promised too much")])
def test_a_gain_without_a_logarithm_has_a_finite_error(expected: float, ratio: float, judged: str) -> None:
    (row,) = predictions([entry(1, expected, ratio)])
    assert row.error is not None and math.isfinite(row.error) and row.judgement == judged
    assert math.isfinite(calibration([row]).mean_absolute_error or 0.0)


@given(st.floats(0.2, 4.0), st.floats(1.2, 4.0))
def test_twice_too_much_and_twice_too_little_weigh_the_same(gain: float, factor: float) -> None:
    over, under = predictions([entry(1, gain, (1 + gain) / factor), entry(2, gain, (1 + gain) * factor)])
    assert over.error == pytest.approx(-under.error)  # type: ignore[operator]
    hits = {over.judgement, under.judgement}
    assert hits == {"hit"} or hits == {"promised too much", "promised too little"}


@pytest.mark.parametrize(("predicted", "ratio", "judgement"), [
    (0.0, 1.04, "hit"), (0.0, 1.06, "promised too little"), (0.0, 0.94, "promised too much"), (0.5, 1.4, "hit"),
    (0.5, 1.1, "promised too much"), (0.5, 2.0, "promised too little"), (1.0, None, "not timed")])
def test_a_prediction_hits_within_five_hundredths_or_half_of_itself(predicted: float, ratio: float | None,
                                                                    judgement: str) -> None:
    (row,) = predictions([entry(1, predicted, ratio)])
    assert row.judgement == judgement


def test_directions_are_summed_up_apart() -> None:
    rows = predictions([entry(1, 0.5, 1.5), entry(2, 0.5, 1.0, "tiling:_k"), entry(3, 0.2, None, "tiling:_k")])
    groups = calibration_by(rows, lambda row: row.direction)
    assert list(groups) == ["fusion:_k", "tiling:_k"]
    assert (groups["fusion:_k"].hits, groups["tiling:_k"].hits, groups["tiling:_k"].untimed) == (1, 0, 1)
    assert "1 of 2 predictions hit" in in_words(calibration(rows)) and "1 not timed" in in_words(calibration(rows))


def test_a_campaign_by_the_playbook_tells_its_predictions_and_a_search_has_none() -> None:
    shown = {}
    for kind in ("playbook", "autotune"):
        goal = Goal("rms_norm", Backend.NUMBA, "cpu-test-1t", "llm", grant=Tier.LIGHT, agent=AgentChoice(kind),
                    budget=Budget(4))
        state = run_campaign(start_state(goal, attended=False), make_agent(goal.agent),
                             FakeEvaluator(lambda source: 80.0 if '"BLOCK": 16' in source else 100.0))
        rows = stated_predictions(state)
        page = report(state, None, "label")
        assert ("Predicted and measured gain" in page) == bool(rows) == bool(predicted_lines(rows)) == bool(
            predicted_html(rows))
        shown[kind] = rows
    assert not shown["autotune"]
    assert all(row.measured is not None for row in shown["playbook"])
