"""Timed outputs of other dtypes than the inputs', of one axis, and such that leave no room, compared whole."""

from __future__ import annotations

import pytest

from harness.domain.vocabulary import Comparison, Outcome, Stage
from harness.operators.base import ShapePoint
from tests.harness.device_timing.device_model import Model, timed

POINTS = {
    "topk": (ShapePoint("50x257", {"rows": 50, "cols": 257, "k": 9}, 1.0, {"k": 9}),),
    "cross_entropy": (ShapePoint("50x257", {"rows": 50, "vocab": 257}, 1.0, {"ignore_index": -100}),),
}
OUTPUTS = {"topk": {"values", "indices"}, "cross_entropy": {"loss"}}
PAIR = {"candidate": "mine", "baseline": "other"}


@pytest.fixture(autouse=True)
def quiet_host(tmp_path, monkeypatch):
    """Roofs and locks of this test alone."""
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path / "var"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def model(**more):
    return Model({"mine": 200.0, "other": 250.0}, **more)


@pytest.mark.parametrize("operator", POINTS)
def test_honest_sides_pass_and_how_close_they_must_be_follows_the_outputs(operator):
    found = timed(PAIR, model(rounded=True), points=POINTS[operator], operator=operator)
    assert found.refused is None and found.run.comparison is Comparison.FASTER
    assert found.device.asked["compared"] == len(found.device.requests) == 6
    nearness = {request.near for request in found.device.requests}
    if operator == "topk":
        assert nearness == {(0.0, 0.0)}
    else:  # losses are float32 whatever the logits are
        assert all(relative == 1e-3 and absolute < 1e-3 for relative, absolute in nearness)


@pytest.mark.parametrize("wrong", [{"partial": "mine"}, {"partial": "mine", "instead": "neighbour"}, {"off": "mine"}])
@pytest.mark.parametrize("operator", POINTS)
def test_what_is_left_out_or_off_by_one_under_the_clock_is_found(operator, wrong):
    found = timed(PAIR, model(**wrong), points=POINTS[operator], operator=operator)
    assert found.run.stage is Stage.BENCHMARK and found.refused.outcome is Outcome.REWARD_HACK
    (reason,) = found.refused.reasons
    assert (reason.code, reason.case) == ("timed_output_wrong", "50x257")
    assert any(f"of '{name}'" in reason.text for name in OUTPUTS[operator])
    assert len(reason.index) == (2 if operator == "topk" else 1)


@pytest.mark.parametrize("operator", POINTS)
def test_what_is_kept_of_a_timed_call_is_verified(operator):
    found = timed({"candidate": "mine"}, model(wrong="mine"), points=POINTS[operator], operator=operator)
    assert found.refused.outcome is Outcome.REWARD_HACK
    assert found.refused.reasons[0].code == "timed_output_wrong"
