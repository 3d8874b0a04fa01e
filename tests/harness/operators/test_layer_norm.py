"""layer_norm: its reference, and bounds that allow two passes in any order and nothing that cancels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.compare import compare
from harness.evaluation.judge.oracle import expect
from harness.operators.implementation import Tensors
from harness.operators.layer_norm import implementation, spec

EPS = {"eps": 1e-5}


def inputs(regime: str, dtype: str = "float32", seed: int = 1, rows: int = 4, cols: int = 19) -> Tensors:
    draw = torch.Generator().manual_seed(seed)
    return implementation.make_inputs({"rows": rows, "cols": cols}, (regime,), dtype_of(dtype), draw, EPS)


@pytest.mark.parametrize("regime", ["normal", "far_offset", "wide", "tiny", "spike", "zeros", "equal"])
def test_the_reference_is_the_formula(regime: str) -> None:
    given = inputs(regime)
    out = implementation.reference(given, EPS)["out"]
    weight, bias = given["weight"].tolist(), given["bias"].tolist()
    for row, values in enumerate(given["x"].tolist()):
        mean = math.fsum(values) / 19
        root = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / 19 + 1e-5)
        wanted = [(value - mean) / root * gain + lift for value, gain, lift in zip(values, weight, bias, strict=True)]
        assert out[row].tolist() == pytest.approx(wanted, rel=1e-9, abs=1e-10)


def test_a_nan_and_an_infinity_take_their_rows_alone() -> None:
    for regime in ("nan", "neg_inf"):
        given = inputs(regime, rows=6)
        row = int(torch.nonzero(~torch.isfinite(given["x"]))[0, 0])
        out = implementation.reference(given, EPS)["out"]
        assert torch.isnan(out).all(1).tolist() == torch.isnan(out).any(1).tolist() == [r == row for r in range(6)]


def finding(given: Tensors, out: torch.Tensor, dtype: str) -> object:
    dims = dict(zip(("rows", "cols"), given["x"].shape, strict=True))
    answer = expect(spec.SPEC, dims, given, EPS, dtype)["out"]
    return compare("out", ("rows", "cols"), out, torch.zeros_like(out, dtype=torch.bool), answer).finding


def serial(values: np.ndarray) -> np.ndarray:
    """Sums of rows one element after the other in float32, the worst order there is."""
    return np.add.accumulate(values, axis=1, dtype=np.float32)[:, -1:]


def two_passes(given: Tensors) -> torch.Tensor:
    x = given["x"].float().numpy()
    cols = np.float32(x.shape[1])
    apart = x - serial(x) / cols
    scale = np.float32(1.0) / np.sqrt(serial(apart * apart) / cols + np.float32(1e-5))
    return torch.from_numpy(apart * scale) * given["weight"].float() + given["bias"].float()


def one_pass(given: Tensors) -> torch.Tensor:
    x = given["x"].float()
    mean = x.mean(-1, keepdim=True)
    variance = (x.square().mean(-1, keepdim=True) - mean.square()).clamp_min(0.0)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * given["weight"].float() + given["bias"].float()


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32), cols=st.sampled_from([1, 2, 33, 1021, 3000]),
       regime=st.sampled_from(["normal", "far_offset", "negative_offset", "offset", "wide", "spike", "sorted"]))
def test_two_passes_are_right_in_the_worst_order(seed: int, cols: int, regime: str) -> None:
    given = inputs(regime, seed=seed, cols=cols)
    assert finding(given, two_passes(given), "float32") is None


@pytest.mark.parametrize("seed", range(5))
def test_a_mean_of_squares_less_a_squared_mean_is_refused_far_from_zero(seed: int) -> None:
    given = inputs("far_offset", seed=seed, cols=1500)
    assert finding(given, one_pass(given), "float32") is not None
    near = inputs("normal", seed=seed, cols=1500)
    assert finding(near, one_pass(near), "float32") is None  # where nothing cancels it is as good


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_of_the_result_gives_the_mean_none_of_its_room(dtype: str) -> None:
    given = inputs("offset", dtype, rows=8, cols=1024)
    unit = torch.finfo(dtype_of(dtype)).eps
    right = implementation.reference(given, EPS)["out"]
    assert finding(given, right.to(dtype_of(dtype)), dtype) is None
    size = right.abs() + given["weight"].double().abs()
    moved = right + 8.0 * unit * size  # an error of the mean by a few roundings of 1, with rows around 100
    assert finding(given, moved.to(dtype_of(dtype)), dtype) is not None


def test_an_exact_problem_tells_a_wrong_mean_and_a_wrong_length_apart() -> None:
    probe, = implementation.exact_probes({"rows": 3, "cols": 1021}, torch.bfloat16, torch.Generator().manual_seed(0))
    right = probe.outputs["out"]
    assert torch.equal(implementation.honest(probe.inputs, probe.attributes)["out"], right)
    x, cols = probe.inputs["x"].double(), probe.inputs["x"].shape[1]
    apart = x - x.mean(-1, keepdim=True)
    weight, bias = probe.inputs["weight"].double(), probe.inputs["bias"].double()
    longer = apart * torch.rsqrt(apart.square().sum(-1, keepdim=True) / (cols - 1) + probe.attributes["eps"])
    shifted = apart + 2.0**-12
    for wrong in (longer * weight + bias, shifted * weight + bias):
        assert not torch.equal(wrong.to(torch.bfloat16), right)


def test_special_parameters_meet_no_value_near_the_mean() -> None:
    given = inputs("special_weights", rows=64, cols=40)
    odd = torch.isinf(given["weight"])
    out = implementation.honest(given, EPS)["out"][:, odd]
    assert int(odd.sum()) == 8 and torch.isinf(out).all()


def test_parameters_count_once_as_traffic() -> None:
    assert spec.SPEC.bytes_per_call({"rows": 3, "cols": 5}, 2) == (2 * 15 + 2 * 5) * 2
