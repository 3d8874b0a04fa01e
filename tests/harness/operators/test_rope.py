"""Rotary position embedding: the reference pair by pair, exact problems, and what its inputs hold."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.vocabulary import Backend
from harness.evaluation.buffers import dtype_of
from harness.operators.rope import implementation
from harness.operators.rope.cases import sizes
from harness.operators.rope.spec import SPEC

DIMS = sizes(2, 3, 4, 2, 5)
DTYPES = ("float32", "bfloat16", "float16")


def inputs(regime: str, dtype: str = "float32", seed: int = 1):
    return implementation.make_inputs(DIMS, (regime,), dtype_of(dtype), torch.Generator().manual_seed(seed), {})


@pytest.mark.parametrize("regime", ["normal", "wide", "offset", "free_angles", "one_hot"])
def test_reference(regime: str) -> None:
    given = inputs(regime)
    outputs = implementation.reference(given, {})
    for name, target in (("q", "q_out"), ("k", "k_out")):
        for item, place, head in ((0, 0, 0), (1, 2, 1), (0, 1, 1)):
            values, got = given[name][item, place, head].tolist(), outputs[target][item, place, head].tolist()
            for pair in range(5):
                c, s = given["cos"][place, pair].item(), given["sin"][place, pair].item()
                left, right = values[pair], values[pair + 5]
                room = 1e-15 * (abs(left) + abs(right)) * (abs(c) + abs(s))
                assert got[pair] == pytest.approx(left * c - right * s, rel=1e-12, abs=room)
                assert got[pair + 5] == pytest.approx(right * c + left * s, rel=1e-12, abs=room)


def test_angles_are_those_of_consecutive_positions_and_of_every_frequency() -> None:
    given = implementation.make_inputs(sizes(1, 40, 1, 1, 64), ("normal",), torch.float32,
                                       torch.Generator().manual_seed(3), {})
    assert torch.allclose(given["cos"].square() + given["sin"].square(), torch.ones(40, 64), atol=1e-6)
    angles = torch.atan2(given["sin"], given["cos"]).double()
    steps = torch.remainder(angles[1:] - angles[:-1] + math.pi, 2 * math.pi) - math.pi
    wanted = 10_000.0 ** (-torch.arange(64, dtype=torch.float64) / 64)
    assert torch.allclose(steps, wanted.expand_as(steps), atol=1e-5)
    other = implementation.make_inputs(sizes(1, 40, 1, 1, 64), ("normal",), torch.float32,
                                       torch.Generator().manual_seed(4), {})
    assert not torch.equal(other["cos"], given["cos"])


def test_a_nan_stays_in_its_pair_and_one_in_an_angle_in_its_column() -> None:
    given = inputs("normal")
    given["q"][1, 2, 3, 1] = torch.nan
    outputs = implementation.reference(given, {})
    assert torch.nonzero(torch.isnan(outputs["q_out"])).tolist() == [[1, 2, 3, 1], [1, 2, 3, 6]]
    assert not torch.isnan(outputs["k_out"]).any()
    given = inputs("normal")
    given["sin"][0, 4] = torch.nan
    outputs = implementation.reference(given, {})
    for target, heads in (("q_out", 4), ("k_out", 2)):
        wrong = torch.nonzero(torch.isnan(outputs[target]))
        assert len(wrong) == 2 * heads * 2
        assert set(wrong[:, 1].tolist()) == {0} and set(wrong[:, 3].tolist()) == {4, 9}


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_exact_problems_refuse_what_is_nearly_right(dtype: str, seed: int) -> None:
    """Products rounded before they are added, and heads turned the other way, whatever the bound would say."""
    kind = dtype_of(dtype)
    probes = implementation.exact_probes(sizes(2, 3, 6, 2, 37), kind, torch.Generator().manual_seed(seed))
    assert probes[0].name == "quarter turns" and all(probe.roundings == 0.0 for probe in probes)
    for probe in probes[1:]:
        left, right = probe.inputs["k"].float().chunk(2, -1)
        cos, sin = (probe.inputs[name].float()[None, :, None] for name in ("cos", "sin"))
        narrow = torch.float16 if dtype == "float32" else kind
        rounded = [(term * 1.0).to(narrow).float() for term in (left * cos, right * sin)]
        assert not torch.equal((rounded[0] - rounded[1]).to(kind), probe.outputs["k_out"][..., :37])
        assert not torch.equal((left * cos + right * sin).to(kind), probe.outputs["k_out"][..., :37])
        for values in probe.outputs.values():
            assert torch.isfinite(values).all() and (values != 0).all()


@pytest.mark.parametrize("regime", [case.regime for case in SPEC.cases if case.regime != "special_angles"])
def test_no_finite_head_in_float16_has_an_infinite_result(regime: str) -> None:
    given = inputs(regime, "float16")
    outputs = implementation.honest(given, {})
    for name, target in (("q", "q_out"), ("k", "k_out")):
        pairs = torch.isfinite(given[name]).unflatten(-1, (2, 5)).all(-2, keepdim=True)
        assert (torch.isfinite(outputs[target].unflatten(-1, (2, 5))) | ~pairs).all()


def test_bytes_count_heads_twice_and_angles_once() -> None:
    dims = sizes(4, 4096, 32, 8, 64)
    assert SPEC.bytes_per_call(dims, 2) == (2 * 4 * 4096 * 40 * 128 + 2 * 4096 * 64) * 2
    labels = [point.label for point in SPEC.workloads["llm"].shapes[Backend.TRITON]]
    assert set(labels) == {"B32 S1 H32/8 D128", "B4 S4096 H32/8 D128", "B1 S8192 H64/8 D128"}
