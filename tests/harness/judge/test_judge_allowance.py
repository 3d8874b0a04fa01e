"""What a verdict says about a bound is what was applied, and names the part that decided."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.codec import to_document
from harness.domain.verdict import Bound
from harness.evaluation.judge.allowance import allowance_of
from harness.evaluation.judge.compare import compare
from harness.evaluation.judge.inputs import all_attributes, make_inputs
from harness.evaluation.judge.oracle import expect
from harness.operators import registry
from harness.operators.base import Tolerance
from harness.operators.implementation import load_implementation

OPERATORS = [spec for spec in registry.all_operators() if not spec.tolerances["float32"].exact]
TOLERANCE = Tolerance("float32", factor=4.0, ulps=6.0, cap=1e-4, reason="test")


def bound_at(error: float, scale: float = 2.0, care: float = 0.0, relative: float | None = None) -> Bound:
    reference = torch.full((1, 3), scale, dtype=torch.float64)
    honest = reference.float()
    honest[0, 1] += error * scale
    found = allowance_of(reference, honest, reference, care, TOLERANCE, 4, relative)
    bound = found.at("out", (0, 2), 1e-9)
    assert bound.absolute == pytest.approx(float(found.bound()[0, 2]))
    return bound


def test_the_part_that_decides_is_named() -> None:
    assert bound_at(0.0).binding == "rounding"
    assert bound_at(1e-5).binding == "honest"
    assert bound_at(1e-5).relative == pytest.approx(4e-5, rel=0.02)
    assert bound_at(1e-2).binding == "cap"
    assert bound_at(1e-2).relative == 1e-4
    assert bound_at(0.0, care=1e9).binding == "cap"
    assert bound_at(1e-2, relative=0.03).binding == "override"
    assert bound_at(1e-2, relative=0.03).relative == 0.03


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@given(seed=st.integers(0, 2**32), change=st.floats(1.0, 1.5))
def test_a_bound_belongs_to_the_worst_element(spec, dtype: str, seed: int, change: float) -> None:
    dims = {**spec.cases[0].dims, spec.outputs[0].dims[-1]: 16}
    inputs = make_inputs(spec, dims, "normal", all_attributes(spec, {}), dtype, seed)
    name = spec.outputs[0].name
    answer = expect(spec, dims, inputs, all_attributes(spec, {}), dtype)[name]
    got = load_implementation(spec).honest(inputs, all_attributes(spec, {}))[name] * change
    result = compare(name, spec.outputs[0].dims, got, torch.zeros(got.shape, dtype=torch.bool), answer)
    bound = result.bound
    assert bound is not None and result.worst_ratio is not None
    assert bound.absolute == pytest.approx(float(answer.bound.expand_as(answer.values)[bound.index]))
    assert bound.error / bound.absolute == pytest.approx(result.worst_ratio)
    assert bound.relative <= bound.cap == spec.tolerances[dtype].cap
    assert bound.reason == spec.tolerances[dtype].reason
    if result.finding is not None:
        assert result.finding.index == bound.index
        assert result.finding.bound == pytest.approx(bound.absolute)
    part = answer.rows(bound.index[0], bound.index[0] + 1)
    inside = compare(name, spec.outputs[0].dims, got[bound.index[0] :][:1], torch.zeros_like(got[:1]).bool(), part)
    assert inside.bound is not None
    assert to_document(inside.bound) == to_document(bound) | {"index": [0, *bound.index[1:]]}
