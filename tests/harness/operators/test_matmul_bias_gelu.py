"""matmul_bias_gelu: the reference element by element, where GELU saturates, and what the bound tells apart."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.oracle import expect
from harness.operators.matmul_bias_gelu import implementation
from harness.operators.matmul_bias_gelu.spec import SPEC

DIMS = {"m": 5, "k": 7, "n": 11}


def inputs(regime: str, dtype: str = "float32", dims: dict[str, int] | None = None, seed: int = 1):
    draw = torch.Generator().manual_seed(seed)
    return implementation.make_inputs(dims or DIMS, (regime,), dtype_of(dtype), draw, {})


@pytest.mark.parametrize("regime", ["normal", "wide", "b_wide", "sweep", "zeros", "bias_large"])
def test_reference(regime: str) -> None:
    given = inputs(regime)
    out = implementation.reference(given, {})["out"]
    a, b, bias = (given[name].double().tolist() for name in ("a", "b", "bias"))
    for row in range(DIMS["m"]):
        for column in range(DIMS["n"]):
            s = math.fsum(a[row][term] * b[term][column] for term in range(DIMS["k"])) + bias[column]
            right = 0.5 * s * (1 + math.tanh(math.sqrt(2 / math.pi) * (s + 0.044715 * s**3)))
            assert float(out[row, column]) == pytest.approx(right, rel=1e-9, abs=1e-12)


def test_a_nan_stays_in_its_row_or_column() -> None:
    for regime, axis in (("nan", 1), ("b_nan", 0)):
        found = torch.isnan(implementation.reference(inputs(regime), {})["out"])
        lines = found.all(axis)
        assert int(lines.sum()) == 1 and int(found.sum()) == found.shape[axis]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_form_with_erf_and_a_rounded_sum_are_told_apart(dtype: str) -> None:
    case = next(case for case in SPEC.cases if case.regime == "sweep")
    given = inputs("sweep", dtype, dict(case.dims))
    answer = expect(SPEC, case.dims, given, {}, dtype)["out"]
    sums = given["a"].float() @ given["b"].float() + given["bias"].float()
    honest = torch.nn.functional.gelu(sums, approximate="tanh")
    for other, passes in ((honest, True), (torch.nn.functional.gelu(sums), False)):
        off = (other.to(given["a"].dtype).double() - answer.values).abs()
        assert bool((off <= answer.bound).all()) is passes


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 700), dtype=st.sampled_from(["float32", "bfloat16", "float16"]))
def test_exact_probes_are_exact_and_beyond_where_gelu_bends(seed: int, k: int, dtype: str) -> None:
    probes = implementation.exact_probes({**DIMS, "k": k}, dtype_of(dtype), torch.Generator().manual_seed(seed))
    for probe in probes:
        a, b, bias = (probe.inputs[name].double() for name in ("a", "b", "bias"))
        sums = a @ b + bias
        assert float(sums.min()) >= 64.0
        assert torch.equal(sums.to(dtype_of(dtype)), probe.outputs["out"])
        assert torch.equal(implementation.honest(probe.inputs, {})["out"], probe.outputs["out"])
    assert len(probes) == 3 or dtype == "float16"


def test_the_weight_changes_with_every_timed_call_and_the_bias_does_not() -> None:
    assert {argument.name: argument.per_call for argument in SPEC.inputs} == {"a": True, "b": True, "bias": False}
