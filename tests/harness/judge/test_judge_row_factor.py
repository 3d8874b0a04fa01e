"""What a long sum may err is common to its row: an element's own error has a narrower bound."""

from __future__ import annotations

import pytest
import torch

from harness.domain.vocabulary import Outcome
from harness.evaluation.judge.compare import compare
from harness.evaluation.judge.inputs import make_inputs
from harness.evaluation.judge.oracle import expect
from harness.operators import registry
from harness.operators.implementation import load_implementation

SOFTMAX = registry.get("softmax")
DIMS = {"rows": 6, "cols": 4096}
U32 = 2.0**-24


def finding(regime: str, off: torch.Tensor, seed: int = 1):
    inputs = make_inputs(SOFTMAX, DIMS, regime, {}, "float32", seed)
    answer = expect(SOFTMAX, DIMS, inputs, {}, "float32")["out"]
    got = (load_implementation(SOFTMAX).honest(inputs, {})["out"].double() * (1 + off)).float()
    return compare("out", ("rows", "cols"), got, torch.zeros(got.shape, dtype=torch.bool), answer)


@pytest.mark.parametrize("regime", ["normal", "offset", "masked", "spike", "one_hot"])
@pytest.mark.parametrize("roundings", [-60.0, 0.0, 60.0])
def test_a_row_may_err_as_its_sum_does(regime: str, roundings: float) -> None:
    assert finding(regime, torch.full((6, 1), roundings * U32)).finding is None


def test_elements_may_not_err_apart_as_far() -> None:
    off = 60.0 * U32 * (1.0 - 2.0 * (torch.arange(4096) % 2))
    result = finding("tiny", off[None, :])
    assert result.worst_ratio is not None and result.worst_ratio <= 1.0
    assert result.finding is not None and result.finding.outcome is Outcome.INCORRECT_NUMERIC
    assert "moves all elements of a row alike" in result.finding.text


@pytest.mark.parametrize("regime", ["normal", "tiny", "one_hot"])
def test_a_logarithm_of_the_sum_may_go_into_the_exponent(regime: str) -> None:
    inputs = make_inputs(SOFTMAX, DIMS, regime, {}, "float32", 3)
    answer = expect(SOFTMAX, DIMS, inputs, {}, "float32")["out"]
    away = inputs["x"] - inputs["x"].amax(-1, keepdim=True)
    got = torch.exp(away - torch.log(torch.exp(away).sum(-1, keepdim=True)))
    assert compare("out", ("rows", "cols"), got, torch.zeros(got.shape, dtype=torch.bool), answer).finding is None
