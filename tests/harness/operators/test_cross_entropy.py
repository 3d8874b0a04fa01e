"""cross_entropy: the reference against torch and the formula, and what the regimes about targets promise."""

from __future__ import annotations

import math

import pytest
import torch

from harness.evaluation.judge.oracle import expect
from harness.operators import registry
from harness.operators.implementation import load_implementation

SPEC = registry.get("cross_entropy")
LOSS = load_implementation(SPEC)


def made(regime: str, rows: int = 12, vocab: int = 31, ignore: int = -100, seed: int = 1, dtype=torch.float32):
    draw = torch.Generator().manual_seed(seed)
    return LOSS.make_inputs({"rows": rows, "vocab": vocab}, (regime,), dtype, draw, {"ignore_index": ignore})


@pytest.mark.parametrize("regime", ["normal", "offset", "huge", "masked", "sure", "edge_targets"])
@pytest.mark.parametrize("ignore", [-100, 3, 2**40])
def test_the_reference_is_the_formula(regime: str, ignore: int) -> None:
    given = made(regime, ignore=ignore)
    loss = LOSS.reference(given, {"ignore_index": ignore})["loss"]
    for row, (logits, target) in enumerate(zip(given["logits"].tolist(), given["target"].tolist(), strict=True)):
        top = max(logits)
        total = math.fsum(math.exp(max(value - top, -800.0)) for value in logits if value > -math.inf)
        wanted = 0.0 if target == ignore else math.log(total) + top - logits[target]
        assert loss[row].item() == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("regime", ["normal", "nan", "all_neg_inf", "hidden_target", "all_ignored"])
def test_special_rows_are_what_torch_makes_of_them(regime: str) -> None:
    given = made(regime)
    eager = LOSS.libraries(given, {"ignore_index": -100})["torch eager"]()["loss"]
    torch.testing.assert_close(LOSS.reference(given, {"ignore_index": -100})["loss"].float(), eager, equal_nan=True)


def test_regimes_about_targets_keep_their_promises() -> None:
    assert (made("all_ignored")["target"] == -100).all()
    assert torch.isnan(made("all_ignored")["logits"]).any()
    assert set(made("edge_targets")["target"].tolist()) == {0, 30}
    sure = made("sure")
    assert torch.equal(sure["target"], sure["logits"].argmax(-1))
    hidden = made("hidden_target")
    picked = hidden["logits"].gather(1, hidden["target"][:, None])[:, 0]
    assert torch.isinf(picked).tolist() == [row % 2 == 0 for row in range(12)]
    usual = made("normal", rows=4000)["target"]
    assert 0.08 < float((usual == -100).float().mean()) < 0.17
    assert set(usual[usual != -100].tolist()) == set(range(31))


def test_the_bound_grows_with_the_logits_and_not_with_the_vocabulary_times_them() -> None:
    """Logits around 1e4: a bound that took the sum's error relative to them would allow a loss off by a fifth."""
    dims = {"rows": 6, "vocab": 4096}
    draw = torch.Generator().manual_seed(2)
    given = LOSS.make_inputs(dims, ("negative_offset",), torch.float32, draw, {"ignore_index": -100})
    answer = expect(SPEC, dims, given, {"ignore_index": -100}, "float32")["loss"]
    assert float(answer.bound.max()) < 2e-2
    assert bool((answer.bound[given["target"] == -100] < 1e-30).all())


def test_losses_of_half_precision_logits_are_held_to_float32() -> None:
    dims = {"rows": 6, "vocab": 1000}
    draw = torch.Generator().manual_seed(3)
    given = LOSS.make_inputs(dims, ("normal",), torch.bfloat16, draw, {"ignore_index": -100})
    answer = expect(SPEC, dims, given, {"ignore_index": -100}, "bfloat16")["loss"]
    assert LOSS.honest(given, {"ignore_index": -100})["loss"].dtype is torch.float32
    assert float(answer.bound.max()) < 2e-5
