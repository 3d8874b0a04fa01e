"""Float32 sums in any order are inside the bound; sums that leave terms out are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluation.judge.compare import Compared, compare
from harness.evaluation.judge.inputs import make_inputs
from harness.evaluation.judge.oracle import expect
from harness.operators import registry
from harness.operators.summation import serial_loss

REGIMES = {
    "rms_norm": ["normal", "offset", "spike", "wide", "equal", "one_hot", "alternating", "huge"],
    "softmax": ["normal", "offset", "spike", "wide", "equal", "one_hot", "masked", "sorted", "tiny"],
}
CASES = [(name, regime) for name, regimes in REGIMES.items() for regime in regimes]


def serial(terms: np.ndarray) -> np.ndarray:
    """Row sums, strictly from left to right in float32, [rows, 1]."""
    total = np.zeros((terms.shape[0], 1), np.float32)
    for col in range(terms.shape[1]):
        total += terms[:, col : col + 1]
    return total


def kernel(name: str, inputs: dict[str, torch.Tensor], total: Any) -> np.ndarray:
    """The operator in float32 with row sums by ``total``."""
    x = inputs["x"].numpy()
    if name == "rms_norm":
        scale = 1 / np.sqrt(total(x * x) / np.float32(x.shape[1]) + np.float32(1e-6))
        return x * scale * inputs["weight"].numpy()
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / total(powers)


def judged(name: str, regime: str, seed: int, total: Any) -> Compared:
    spec, dims, attributes = registry.get(name), {"rows": 8, "cols": 1500}, {"eps": 1e-6}
    inputs = make_inputs(spec, dims, regime, attributes, "float32", seed)
    right = expect(spec, dims, inputs, attributes, "float32")["out"]
    got = torch.from_numpy(kernel(name, inputs, total))
    return compare("out", ("rows", "cols"), got, torch.zeros(got.shape, dtype=torch.bool), right)


@pytest.mark.parametrize(("name", "regime"), CASES)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_serial_sum_is_honest(name: str, regime: str, seed: int) -> None:
    assert judged(name, regime, seed, serial).finding is None


@pytest.mark.parametrize("name", list(REGIMES))
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_sum_over_every_second_term_is_not(name: str, seed: int) -> None:
    assert judged(name, "normal", seed, lambda terms: 2 * serial(terms[:, ::2])).finding is not None


@pytest.mark.parametrize("name", list(REGIMES))
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_sum_without_its_last_three_terms_is_not(name: str, seed: int) -> None:
    assert judged(name, "offset" if name == "rms_norm" else "equal", seed, lambda terms: serial(terms[:, :-3])).finding


def test_what_a_serial_sum_can_lose() -> None:
    even = torch.ones(1, 1000, dtype=torch.float64)
    assert serial_loss(even).item() == 0
    spiked = torch.cat([torch.tensor([[1e8]], dtype=torch.float64), even], 1)
    assert serial_loss(spiked).item() == pytest.approx(1000 / (1e8 * 2**-24), rel=1e-3)
    assert serial_loss(torch.tensor([[torch.nan, 1.0]], dtype=torch.float64)).item() == 0
