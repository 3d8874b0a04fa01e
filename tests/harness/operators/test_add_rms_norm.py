"""add_rms_norm: its reference, both ways to its result, and the sum that is handed out beside it."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.vocabulary import Backend, Outcome
from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.compare import compare
from harness.evaluation.judge.oracle import expect
from harness.operators.add_rms_norm import implementation, spec
from harness.operators.implementation import Tensors
from tests.harness.judge.evaluations import judged, make_run
from tests.harness.judge.plain_worker import PlainOpener

DTYPES = ("float32", "bfloat16", "float16")
AXES = ("rows", "cols")


def inputs(regime: str, dtype: str = "float32", seed: int = 1, rows: int = 4, cols: int = 19) -> Tensors:
    draw = torch.Generator().manual_seed(seed)
    return implementation.make_inputs({"rows": rows, "cols": cols}, (regime,), dtype_of(dtype), draw, {"eps": 1e-5})


@pytest.mark.parametrize("regime", ["normal", "wide", "tiny", "spike", "zeros", "cancelling", "unequal"])
def test_the_reference_is_the_formula(regime: str) -> None:
    given = inputs(regime)
    right = implementation.reference(given, {"eps": 1e-5})
    for row in range(4):
        sums = [a + b for a, b in zip(given["x"][row].tolist(), given["residual"][row].tolist(), strict=True)]
        root = math.sqrt(math.fsum(value * value for value in sums) / 19 + 1e-5)
        assert right["residual_out"][row].tolist() == sums
        for col, value in enumerate(sums):
            wanted = value / root * given["weight"][col].item()
            assert right["out"][row, col].item() == pytest.approx(wanted, rel=1e-12, abs=0)


def normed(total: torch.Tensor, given: Tensors, dtype: torch.dtype, twice: bool) -> torch.Tensor:
    """The result from ``total`` (float32), rounded once, or also before the weight as many models do."""
    scaled = total * torch.rsqrt(total.square().mean(-1, keepdim=True) + 1e-5)
    return ((scaled.to(dtype).float() if twice else scaled) * given["weight"].float()).to(dtype)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), dtype=st.sampled_from(DTYPES), rounded=st.booleans(), twice=st.booleans(),
       regime=st.sampled_from(["normal", "wide", "spike", "cancelling", "unequal", "one_hot", "offset", "sorted"]),
       cols=st.sampled_from([1, 2, 7, 300]))
def test_the_norm_of_the_sum_and_of_the_rounded_sum_are_both_right(
    seed: int, dtype: str, rounded: bool, twice: bool, regime: str, cols: int
) -> None:
    kind, dims = dtype_of(dtype), {"rows": 8, "cols": cols}
    given = inputs(regime, dtype, seed, **dims)
    total = given["x"].float() + given["residual"].float()
    out = normed(total.to(kind).float() if rounded else total, given, kind, twice and regime != "wide")
    answers = expect(spec.SPEC, dims, given, {"eps": 1e-5}, dtype)
    for name, got in (("out", out), ("residual_out", total.to(kind))):
        found = compare(name, AXES, got, torch.zeros_like(got, dtype=torch.bool), answers[name])
        assert found.finding is None, found.finding


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_room_for_both_is_no_room_for_more(dtype: str) -> None:
    given = inputs("normal", dtype, rows=16, cols=512)
    answer = expect(spec.SPEC, {"rows": 16, "cols": 512}, given, {"eps": 1e-5}, dtype)["out"]
    sized = answer.values.abs() > 1e-6
    share = answer.bound[sized] / answer.values[sized].abs()
    unit = torch.finfo(dtype_of(dtype)).eps / 2
    assert float(share.median()) < spec.TOLERANCES[dtype].cap + unit
    assert float(share.max()) < spec.TOLERANCES[dtype].cap + 3 * unit


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("regime", ["huge", "large", "largest_squares", "alternating", "wide"])
def test_no_sum_leaves_the_range(regime: str, dtype: str) -> None:
    given = inputs(regime, dtype, cols=2048)
    assert torch.isfinite(given["x"] + given["residual"]).all()
    assert torch.isfinite(implementation.honest(given, {"eps": 1e-5})["out"]).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sum_that_is_not_rounded_to_nearest_shows_in_an_exact_problem(dtype: str) -> None:
    kind = dtype_of(dtype)
    probes = implementation.exact_probes({"rows": 3, "cols": 1021}, kind, torch.Generator().manual_seed(0))
    sums = next(probe for probe in probes if probe.name == "sums rounded once")
    exact = sums.inputs["x"].double() + sums.inputs["residual"].double()
    right = sums.outputs["residual_out"]
    assert torch.equal(exact.to(kind), right) and sums.roundings == 0.0
    assert float((right.double().abs() > exact.abs()).float().mean()) > 0.2  # these, rounding towards zero gets wrong
    parts = next(probe for probe in probes if probe.name != sums.name)
    assert torch.equal(parts.inputs["x"].double() + parts.inputs["residual"].double(),
                       parts.outputs["residual_out"].double())


def test_a_kernel_that_forgets_one_output_is_told_which() -> None:
    source = spec.SPEC.baseline(Backend.NUMBA).replace("                residual_out[row, start + lane] = value\n", "")
    source = source.replace("= residual_out[row, col] *", "= (x[row, col] + residual[row, col]) *")
    outcome, reason = judged(make_run(spec.SPEC, Backend.NUMBA, source, PlainOpener(), small=True))
    assert outcome is Outcome.INCORRECT_NUMERIC
    assert reason.code == "not_written" and "'residual_out'" in reason.text


def test_both_inputs_and_both_outputs_count_as_traffic() -> None:
    assert spec.SPEC.bytes_per_call({"rows": 3, "cols": 5}, 2) == (4 * 15 + 5) * 2
