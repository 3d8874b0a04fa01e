"""topk: the reference against a stable sort, and what the regimes about ties and special values promise."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.operators import registry
from harness.operators.implementation import load_implementation
from harness.operators.topk.regimes import OWN

SPEC = registry.get("topk")
TOPK = load_implementation(SPEC)
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0**-149, -(2.0**-149), float("inf"), float("-inf"), float("nan")])


def made(regime: str, rows: int = 6, cols: int = 90, k: int = 9, seed: int = 1, dtype=torch.float32) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    return TOPK.make_inputs({"rows": rows, "cols": cols, "k": k}, (regime,), dtype, draw, {"k": k})["x"]


def sorted_stably(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    found = torch.sort(x.double(), dim=-1, descending=True, stable=True)
    return found.values[:, :k], found.indices[:, :k]


def same(x: torch.Tensor, k: int) -> None:
    values, columns = sorted_stably(x, k)
    found = TOPK.reference({"x": x}, {"k": k})
    assert found["indices"].tolist() == columns.tolist()
    torch.testing.assert_close(found["values"], values, rtol=0, atol=0, equal_nan=True)
    honest = TOPK.honest({"x": x}, {"k": k})
    assert honest["indices"].dtype is torch.int64 and torch.equal(honest["indices"], columns)
    torch.testing.assert_close(honest["values"].double(), values, rtol=0, atol=0, equal_nan=True)


@given(st.lists(st.lists(NUMBERS, min_size=7, max_size=7), min_size=1, max_size=4), st.integers(1, 7))
@settings(deadline=None)
def test_the_reference_is_a_stable_sort_whatever_the_values(rows: list[list[float]], k: int) -> None:
    same(torch.tensor(rows), k)


@pytest.mark.parametrize("regime", [*OWN, "normal", "equal", "masked", "nan", "all_neg_inf", "sorted", "all_denormal"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_reference_is_a_stable_sort_in_every_regime(regime: str, dtype: torch.dtype) -> None:
    same(made(regime, dtype=dtype), 9)
    same(made(regime, cols=9, dtype=dtype), 9)


def test_regimes_hold_what_their_names_promise() -> None:
    assert set(made("few").flatten().tolist()) == {-1.0, 0.0, 1.0, 2.0}
    assert ((made("last_tie") > 0).sum(-1) == 4).all()
    zeros = made("both_zeros")
    assert (zeros <= 0).all() and len(set(torch.signbit(zeros[zeros == 0]).tolist())) == 2
    nans = torch.isnan(made("nans", cols=300)).sum(-1)
    assert (nans < 9).any() and (nans > 9).any() and (nans == 300).any()
    assert len(set(torch.signbit(made("nans")[torch.isnan(made("nans"))]).tolist())) == 2
    assert torch.isposinf(made("infinities", cols=900)).any() and torch.isneginf(made("infinities")).any()
    assert (torch.isfinite(made("hardly_any")).sum(-1) == 4).all()
    assert (made("falling").diff() <= 0).all()
    columns = TOPK.reference({"x": made("cluster", cols=2000)}, {"k": 9})["indices"]
    assert (columns.amax(-1) - columns.amin(-1) < 36).all()


def test_numbers_of_an_exact_probe_are_exact_in_every_dtype() -> None:
    dims = {"rows": 3, "cols": 600, "k": 256}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for probe in TOPK.exact_probes(dims, dtype, torch.Generator().manual_seed(1)):
            assert probe.outputs["indices"].shape == (3, 256)
            found = TOPK.honest(probe.inputs, probe.attributes)
            assert all(torch.equal(found[name], right) for name, right in probe.outputs.items())
