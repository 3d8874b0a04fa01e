"""Reduced precision is refused, honest float32 in any order is not; on the dtypes of both backends."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluation.judge.inputs import all_attributes, make_inputs
from harness.evaluation.judge.oracle import expect
from harness.operators import registry
from harness.operators.base import Case, OperatorSpec
from harness.operators.exact import MANTISSA, odd_integers, tie_distance, with_square_sum
from tests.harness.judge.simulated import Numerics, missed, missed_exactly, tf32

OPERATORS = [pytest.param(spec, id=spec.name) for spec in registry.all_operators()]
SUMMING = [given for given in OPERATORS if not given.values[0].tolerances["float32"].exact]
DTYPES = ["float32", "bfloat16"]
NARROW = ["tf32", "bfloat16", "float16"]


def small_cases(spec: OperatorSpec) -> list[Case]:
    return [case for case in spec.cases if max(case.dims.values()) < 5000]


@pytest.mark.parametrize("spec", OPERATORS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "how",
    [Numerics(), Numerics(serial=False), Numerics(serial=False, inner=True)],
    ids=["serial", "pairwise", "rounded twice"],
)
def test_honest_numerics_pass_every_case_and_probe(spec: OperatorSpec, dtype: str, how: Numerics) -> None:
    """``rounded twice``: an intermediate result in the inputs' dtype, as eager implementations have it."""
    assert list(missed(spec, dtype, how, 11, small_cases(spec))) == []


@pytest.mark.parametrize("spec", SUMMING)
@pytest.mark.parametrize("dtype", [*DTYPES, "float16"])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32), sums=st.sampled_from(NARROW), serial=st.booleans())
def test_a_narrow_sum_fails_an_exact_probe(spec: OperatorSpec, dtype: str, seed: int, sums: str, serial: bool) -> None:
    """Pairwise sums too, whose error a bound for half precision would let through."""
    assert list(missed_exactly(spec, dtype, Numerics(sums=sums, serial=serial), seed))


@pytest.mark.parametrize("spec", OPERATORS)
@pytest.mark.parametrize("operands", NARROW)
def test_narrow_operands_fail_in_float32(spec: OperatorSpec, operands: str) -> None:
    refused = list(missed(spec, "float32", Numerics(operands=operands, serial=False), 5, small_cases(spec)))
    assert len(refused) >= 8


@pytest.mark.parametrize("spec", OPERATORS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**64))
def test_no_case_is_beyond_the_honest_implementation(spec: OperatorSpec, dtype: str, seed: int) -> None:
    """On a device every case runs in the workload's half precision: none may end as an invalid reference."""
    for case in (*small_cases(spec), *spec.interpret_cases):
        attributes = all_attributes(spec, case.attributes)
        inputs = make_inputs(spec, case.dims, case.regime, attributes, dtype, seed, case.name)
        for right in expect(spec, case.dims, inputs, attributes, dtype).values():
            assert (right.bound == 0 if spec.tolerances[dtype].exact else right.bound > 0).all()
            assert torch.isfinite(right.bound).all()


@pytest.mark.parametrize("spec", OPERATORS)
def test_no_large_case_is_beyond_it_either(spec: OperatorSpec) -> None:
    for case in spec.cases:
        if case not in small_cases(spec):
            attributes = all_attributes(spec, case.attributes)
            inputs = make_inputs(spec, case.dims, case.regime, attributes, "bfloat16", 3, case.name)
            answers = expect(spec, case.dims, inputs, attributes, "bfloat16")
            assert any(right.honest_error is not None for right in answers.values())


@given(seed=st.integers(0, 2**32), count=st.integers(500, 3000))
def test_integers_square_to_exactly_the_sum(seed: int, count: int) -> None:
    total = count * (4**6 - 1)
    values = with_square_sum(count - 12, total, 255, 33, 12, torch.Generator().manual_seed(seed))
    assert values is not None
    assert int(values.square().sum()) == total
    assert (values[:-12] % 2 == 1).all() and values[:-12].min() >= 33 and values.max() <= 255


@pytest.mark.parametrize("dtype", list(MANTISSA))
def test_odd_integers_fill_the_mantissa_and_ties_are_where_rounding_turns(dtype: torch.dtype) -> None:
    drawn = odd_integers((500,), dtype, torch.Generator().manual_seed(1))
    assert torch.equal(drawn.to(dtype).double(), drawn)
    assert (tf32(drawn.float()).double() != drawn).all() == (dtype is torch.float32)
    tie = 1.0 + 2.0 ** -MANTISSA[dtype]
    values = torch.tensor([tie, tie * (1 + 2.0**-30), 1.0], dtype=torch.float64)
    assert tie_distance(values, dtype)[:2].tolist() == pytest.approx([0.0, 2.0**-30], rel=1e-3)
    assert tie_distance(values, dtype)[2] == 2.0 ** -MANTISSA[dtype]
