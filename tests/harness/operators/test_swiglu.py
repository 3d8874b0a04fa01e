"""SwiGLU: the reference element by element, the ends of the exponential, and what its inputs hold."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.oracle import expect
from harness.operators.swiglu import implementation
from harness.operators.swiglu.spec import SPEC

DTYPES = ("float32", "bfloat16", "float16")


def inputs(regime: str, dtype: str = "float32", rows: int = 4, cols: int = 19, seed: int = 1):
    draw = torch.Generator().manual_seed(seed)
    return implementation.make_inputs({"rows": rows, "cols": cols}, (regime,), dtype_of(dtype), draw, {})


def expected(gate: float, up: float) -> float:
    """gate * sigmoid(gate) * up without an overflow on the way."""
    power = math.exp(-abs(gate))
    return gate * (1.0 / (1.0 + power) if gate >= 0 else power / (1.0 + power)) * up


@pytest.mark.parametrize("regime", ["normal", "wide", "tails", "large_ups", "offset", "zeros", "denormal"])
def test_reference(regime: str) -> None:
    given = inputs(regime)
    out = implementation.reference(given, {})["out"]
    for row in range(4):
        for gate, up, got in zip(*(values[row].tolist() for values in (given["gate"], given["up"], out)), strict=True):
            assert got == pytest.approx(expected(gate, up), rel=1e-12, abs=1e-300)


def test_a_very_negative_gate_gives_zero_and_minus_infinity_nan_as_in_torch() -> None:
    given = {"gate": torch.tensor([[-1e4, -3e38, -math.inf, math.nan, 1.0, 1.0]]),
             "up": torch.tensor([[1e30, 1e38, 1.0, 1.0, math.nan, -math.inf]])}
    out = implementation.reference(given, {})["out"][0]
    assert out[:2].tolist() == [0.0, 0.0]
    assert torch.isnan(out[2:5]).all() and out[5] == -math.inf
    eager = implementation.libraries(given, {})["torch eager"]()["out"][0]
    assert torch.equal(torch.isnan(eager), torch.isnan(out))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), dtype=st.sampled_from(DTYPES), gate=st.floats(-110, 110), up=st.floats(-100, 100))
def test_flushed_sigmoids_and_eager_roundings_are_within_the_bound(seed, dtype, gate, up) -> None:
    """A kernel whose exponential overflows to infinity and whose sigmoid is flushed to 0, and one that rounds
    gate * sigmoid(gate) to the inputs' dtype: both are honest."""
    given = inputs("tails", dtype, 3, 50, seed)
    given["gate"][0, 0], given["up"][0, 0] = gate, up
    answer = expect(SPEC, {"rows": 3, "cols": 50}, given, {}, dtype)["out"]
    wide = {name: values.float() for name, values in given.items()}
    sigmoid = 1.0 / (1.0 + torch.exp(-wide["gate"]))
    flushed = torch.where(sigmoid < torch.finfo(torch.float32).tiny, 0.0, sigmoid)
    for got in ((wide["gate"] * flushed * wide["up"]).to(dtype_of(dtype)),
                implementation.libraries(given, {})["torch eager"]()["out"]):
        assert ((got.double() - answer.values).abs() <= answer.bound).all()


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_exact_problems_refuse_a_sigmoid_of_half_precision(dtype: str, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    probes = implementation.exact_probes({"rows": 3, "cols": 1021}, dtype_of(dtype), draw)
    assert {probe.name for probe in probes} == {
        "a sigmoid of 1", "a sigmoid of 1/2", "a sigmoid of 0", "results beside rounding ties"}
    probe = probes[-1]
    gate, up = (probe.inputs[name].float() for name in ("gate", "up"))
    narrow = (gate * torch.sigmoid(gate).bfloat16().float() * up).to(dtype_of(dtype))
    assert not torch.equal(narrow, probe.outputs["out"])
    swapped = implementation.honest({"gate": probe.inputs["up"], "up": probe.inputs["gate"]}, {})["out"]
    assert not torch.equal(swapped, probe.outputs["out"])


@pytest.mark.parametrize("regime", [case.regime for case in SPEC.cases])
def test_no_finite_input_in_float16_has_an_infinite_result(regime: str) -> None:
    given = inputs(regime, "float16", 6, 200)
    finite = torch.isfinite(given["gate"]) & torch.isfinite(given["up"])
    assert torch.isfinite(implementation.honest(given, {})["out"][finite]).all()
