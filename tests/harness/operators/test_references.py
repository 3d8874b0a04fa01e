"""References against formulas written out independently, one element at a time, in exact or double arithmetic."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.vocabulary import Backend
from harness.evaluation.buffers import dtype_of
from harness.operators import registry
from harness.operators.implementation import load_implementation
from harness.operators.values import REGIMES, mixed_rows, stratified

OPERATORS = registry.all_operators()


def implementation(name: str) -> Any:
    return load_implementation(registry.get(name))


def inputs(name: str, dims: dict[str, int], regime: str, seed: int = 1, dtype: str = "float32", **attributes: float):
    draw = torch.Generator().manual_seed(seed)
    return implementation(name).make_inputs(dims, (regime,), dtype_of(dtype), draw, attributes)


@pytest.mark.parametrize("regime", ["normal", "wide", "tiny", "spike", "zeros"])
def test_rms_norm(regime: str) -> None:
    given = inputs("rms_norm", {"rows": 4, "cols": 19}, regime)
    out = implementation("rms_norm").reference(given, {"eps": 1e-5})["out"]
    for row, values in enumerate(given["x"].tolist()):
        root = math.sqrt(math.fsum(value * value for value in values) / 19 + 1e-5)
        for col, value in enumerate(values):
            assert out[row, col].item() == pytest.approx(value / root * given["weight"][col].item(), rel=1e-12, abs=0)


def test_rms_norm_keeps_a_nan_in_its_row() -> None:
    given = inputs("rms_norm", {"rows": 6, "cols": 9}, "nan")
    row = int(torch.nonzero(torch.isnan(given["x"]))[0, 0])
    out = implementation("rms_norm").reference(given, {"eps": 1e-6})["out"]
    assert torch.isnan(out).all(1).tolist() == [index == row for index in range(6)]
    assert torch.isnan(out).any(1).tolist() == [index == row for index in range(6)]


@pytest.mark.parametrize("regime", ["normal", "offset", "huge", "masked", "sorted"])
def test_softmax(regime: str) -> None:
    given = inputs("softmax", {"rows": 3, "cols": 23}, regime)
    out = implementation("softmax").reference(given, {})["out"]
    for row, values in enumerate(given["x"].tolist()):
        top = max(values)
        powers = [math.exp(max(value - top, -800.0)) if value > -math.inf else 0.0 for value in values]
        total = math.fsum(powers)
        assert out[row].tolist() == pytest.approx([power / total for power in powers], rel=1e-12, abs=1e-300)


def test_softmax_of_nothing_but_minus_infinity_is_nan_as_in_torch() -> None:
    given = inputs("softmax", {"rows": 6, "cols": 8}, "all_neg_inf")
    out = implementation("softmax").reference(given, {})["out"]
    assert torch.equal(torch.isnan(out), torch.isnan(torch.softmax(given["x"], -1)))
    assert torch.isnan(out).any()
    assert not torch.isnan(out).all()


@pytest.mark.parametrize("regime", ["normal", "ragged", "empty", "single", "peaked", "offset", "alternating"])
def test_decode_attention(regime: str) -> None:
    dims = {"batch": 4, "q_heads": 6, "kv_heads": 2, "dim": 5, "max_seq": 7}
    given = inputs("decode_attention", dims, regime, scale=0.4)
    out = implementation("decode_attention").reference(given, {"scale": 0.4})["out"]
    for item in range(4):
        length = int(given["seq_lens"][item])
        for head in range(6):
            query = given["q"][item, head].tolist()
            keys = given["k_cache"][item, :length, head // 3].tolist()
            values = given["v_cache"][item, :length, head // 3].tolist()
            scores = [0.4 * math.fsum(a * b for a, b in zip(query, key, strict=True)) for key in keys]
            powers = [math.exp(score - max(scores)) for score in scores]
            for column in range(5):
                parts = [power * value[column] for power, value in zip(powers, values, strict=True)]
                expected = math.fsum(parts) / math.fsum(powers) if length else 0.0
                assert out[item, head, column].item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_ragged_lengths_include_none_one_and_all_and_the_rest_is_nan() -> None:
    dims = {"batch": 5, "q_heads": 2, "kv_heads": 1, "dim": 4, "max_seq": 11}
    given = inputs("decode_attention", dims, "ragged", scale=1.0)
    lengths = given["seq_lens"].tolist()
    assert {0, 1, 11} <= set(lengths)
    for item, length in enumerate(lengths):
        for cache in ("k_cache", "v_cache"):
            assert torch.isnan(given[cache][item, length:]).all()
            assert not torch.isnan(given[cache][item, :length]).any()


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_relations_and_exact_problems_hold_for_an_honest_implementation(spec: Any, dtype: str, seed: int) -> None:
    module = load_implementation(spec)
    case = next(case for case in spec.interpret_cases if case.smoke)
    attributes = {attribute.name: attribute.default for attribute in spec.attributes} | dict(case.attributes)
    draw = torch.Generator().manual_seed(seed)
    base = module.make_inputs(case.dims, ("normal",), dtype_of(dtype), draw, attributes)
    for relation in module.relations(base, attributes, draw):
        wanted = relation.outputs(module.honest(relation.original or base, attributes))
        for name, got in module.honest(relation.inputs, relation.attributes).items():
            if relation.exact:
                assert torch.equal(got, wanted[name]), (relation.name, name)
            else:
                rel = 1e-4 if dtype == "float32" else 2e-2
                close = torch.allclose(got.double(), wanted[name].double(), rtol=rel, atol=rel * 1e-1)
                assert close, (relation.name, name)
    for probe in module.exact_probes(case.dims, dtype_of(dtype), draw):
        made = module.honest(probe.inputs, probe.attributes)
        for name, right in probe.outputs.items():
            left = probe.roundings * 2.0**-24 if right.dtype is torch.float32 else 0.0
            off = (made[name].double() - right.double()).abs()
            assert (off <= left * right.double().abs()).all(), (probe.name, name)


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_inputs_repeat_for_a_seed_and_differ_between_seeds(spec: Any) -> None:
    case = spec.cases[0]
    attributes = {attribute.name: attribute.default for attribute in spec.attributes}
    module = load_implementation(spec)
    draws = [
        module.make_inputs(case.dims, ("normal",), torch.float32, torch.Generator().manual_seed(seed), attributes)
        for seed in (1, 1, 2)
    ]
    name = spec.inputs[0].name
    assert torch.equal(draws[0][name], draws[1][name])
    assert not torch.equal(draws[0][name], draws[2][name])


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_every_regime_named_by_a_case_or_workload_exists(spec: Any) -> None:
    module = load_implementation(spec)
    attributes = {attribute.name: attribute.default for attribute in spec.attributes}
    names = {case.regime for case in (*spec.cases, *spec.interpret_cases)} | {"stratified_spikes"}
    names |= {regime for workload in spec.workloads.values() for regime in workload.regimes}
    small = dict.fromkeys(spec.cases[0].dims, 4)
    for name in names:
        given = module.make_inputs(small, (name,), torch.float16, torch.Generator().manual_seed(0), attributes)
        assert given[spec.inputs[0].name].dtype is torch.float16
    with pytest.raises(KeyError):
        module.make_inputs(small, ("no such regime",), torch.float32, torch.Generator().manual_seed(0), attributes)


def test_mixing_gives_every_regime_its_share_of_rows() -> None:
    rows = mixed_rows(("zeros", "offset"), 10, 8, torch.float32, torch.Generator().manual_seed(0))
    assert sorted((rows.mean(1) > 50).tolist()) == [False] * 5 + [True] * 5


def test_stratified_spikes_cover_a_row_from_end_to_end() -> None:
    places = stratified(32, 1021, torch.Generator().manual_seed(0)).tolist()
    assert places[0] == 0
    assert places[-1] == 1020
    assert max(after - before for before, after in pairwise(places)) < 3 * 1021 / 32


def test_regimes_are_what_they_say() -> None:
    draw = torch.Generator().manual_seed(0)
    make = {name: REGIMES[name](6, 50, torch.float32, draw) for name in REGIMES}
    assert (make["negative"] < 0).all()
    assert (make["one_hot"] != 0).sum(1).tolist() == [1] * 6
    assert torch.isneginf(make["masked"]).any()
    assert not torch.isneginf(make["masked"]).all(1).any()
    assert (make["equal"] == make["equal"][:, :1]).all()
    assert (make["spike"].abs().amax(1) >= 1e3).all()
    assert torch.equal(make["sorted"], make["sorted"].sort(-1).values)
    assert torch.signbit(make["zeros"]).any()
    smallest = torch.finfo(torch.float32).tiny
    assert ((make["all_denormal"].abs() < smallest) & (make["all_denormal"] != 0)).all()
    assert ((make["denormal"].abs() < smallest).any(1) & (make["denormal"].abs() > 0.5).any(1)).all()
    assert (make["largest"].abs() * 2 * 1.4427 > 1e38).all()
    assert torch.isfinite((make["largest"] - make["largest"].flip(1)) * 1.4427).all()
    assert Backend.NUMBA in registry.get("rms_norm").workloads["llm"].shapes
