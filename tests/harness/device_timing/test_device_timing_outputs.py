"""Operators with two outputs on the device clock: each of them is kept, verified and compared."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from harness.domain.vocabulary import Comparison, Outcome
from harness.operators.add_rms_norm import implementation
from harness.operators.base import ShapePoint
from tests.harness.device_timing import device_model
from tests.harness.device_timing.device_model import Model, timed

POINTS = (ShapePoint("48x257", {"rows": 48, "cols": 257}, 0.6, {"eps": 1e-6}),
          ShapePoint("9x515", {"rows": 9, "cols": 515}, 0.4, {"eps": 1e-6}))
PAIR = {"candidate": "mine", "baseline": "other"}


@pytest.fixture(autouse=True)
def quiet_host(tmp_path, monkeypatch):
    """Roofs and locks of this test alone."""
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path / "var"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def measured(monkeypatch, honest=implementation.honest, **more):
    """A session in which the device computes ``honest``."""
    computed = SimpleNamespace(honest=honest, reference=implementation.reference)
    monkeypatch.setattr(device_model, "load_implementation", lambda spec: computed)
    return timed(PAIR, Model({"mine": 80.0, "other": 100.0}, **more), points=POINTS, operator="add_rms_norm")


def test_both_outputs_of_a_sample_are_kept_and_verified(monkeypatch):
    found = measured(monkeypatch)
    assert found.refused is None and found.run.comparison is Comparison.FASTER
    kept = [{keep.output for keep in sweep.keeps} for request in found.device.requests for sweep in request.sweeps
            if sweep.keeps]
    assert kept and all(names == {"out", "residual_out", "x", "residual"} for names in kept)
    assert found.run.clocks["verified_samples"] >= 4


@pytest.mark.parametrize("name", ["out", "residual_out"])
def test_either_output_being_wrong_is_noticed(monkeypatch, name):
    def honest(inputs, attributes):
        made = implementation.honest(inputs, attributes)
        return {**made, name: torch.where(made[name].isfinite(), made[name] * 1.5, made[name])}

    refused = measured(monkeypatch, honest).refused
    assert refused is not None and refused.outcome is Outcome.REWARD_HACK
    assert f"'{name}'" in refused.reasons[1].text


def test_the_norm_of_the_rounded_sum_is_right_when_it_is_timed_too(monkeypatch):
    """Also beside another kernel that normalises the sum itself: what differs is decided by the oracle."""
    def honest(inputs, attributes):
        total = (inputs["x"].float() + inputs["residual"].float()).to(inputs["x"].dtype)
        nothing = torch.zeros_like(total)
        return implementation.honest({**inputs, "x": total, "residual": nothing}, attributes)

    found = measured(monkeypatch, honest, rounded=True)
    assert found.refused is None and found.device.asked["compared"] > 0
