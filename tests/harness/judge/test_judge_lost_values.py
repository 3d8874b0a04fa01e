"""The roundings that sums over a long cache may lose are the same, looked for everywhere or where they can be."""

from __future__ import annotations

import pytest
import torch

from harness.operators.decode_attention import implementation
from harness.operators.registry import get

DIMS = {"batch": 5, "q_heads": 6, "kv_heads": 2, "dim": 16, "max_seq": 700}
SPEC = get("decode_attention")
REGIMES = sorted({case.regime for case in SPEC.cases} - {"many"})


@pytest.mark.parametrize("regime", [*REGIMES, "mixed"])
def test_long_caches_get_the_bound_that_looking_at_every_term_gives(regime, monkeypatch):
    attributes = {"scale": 0.25}
    names = SPEC.workloads["llm"].regimes if regime == "mixed" else (regime,)
    inputs = implementation.make_inputs(DIMS, names, torch.bfloat16, torch.Generator().manual_seed(4), attributes)
    everywhere = implementation.magnitude(inputs, attributes)["out"]
    monkeypatch.setattr(implementation, "LONG", 1)
    chosen = implementation.magnitude(inputs, attributes)["out"]
    for one, other in zip(chosen, everywhere, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=0, equal_nan=True)
