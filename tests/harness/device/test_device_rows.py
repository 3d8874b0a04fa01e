"""Rows chosen after the run, inputs made in parts, and announced calls: pure parts of judging large shapes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backends.triton import planning
from harness.backends.triton.device.documents import documents_of, key_of
from harness.domain.vocabulary import Stage
from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge import large, rows
from harness.evaluation.judge.inputs import all_attributes, make_inputs
from harness.evaluation.judge.lending import Collected, Lending
from harness.evaluation.ports import ROW_GAP, Announced
from harness.operators import registry
from harness.operators.base import OperatorSpec
from harness.operators.implementation import Tensors, load_implementation
from tests.harness.device.runs import SMALL

NORM = registry.get("rms_norm")


def drawn(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.integers(1, 20_000), st.integers(1, 1 << 23), st.integers(0, 2**31))
def test_chosen_rows_hold_both_ends_and_stay_within_the_budget(count: int, per_row: int, seed: int) -> None:
    chosen = rows.choose_rows(count, per_row, drawn(seed)).tolist()
    assert chosen == sorted(set(chosen))
    assert chosen[0] == 0 and chosen[-1] == count - 1
    assert len(chosen) <= max(rows.LEAST_BLOCKS * rows.BLOCK, rows.BUDGET // per_row)
    if count * per_row <= rows.BUDGET:
        assert len(chosen) == count


@given(st.integers(0, 2**31))
@settings(max_examples=20)
def test_other_seeds_choose_other_rows(seed: int) -> None:
    one, two = (rows.choose_rows(8192, 8192, drawn(value)) for value in (seed, seed + 1))
    assert not torch.equal(one, two)
    assert torch.equal(one, rows.choose_rows(8192, 8192, drawn(seed)))


@pytest.mark.parametrize("operator", registry.NAMES)
def test_rows_of_every_operator_are_problems_of_their_own(operator: str) -> None:
    spec = registry.get(operator)
    dim, dims = rows.row_dim(spec), SMALL[operator]
    assert dim is not None
    implementation, attributes = load_implementation(spec), all_attributes(spec, {})
    inputs = make_inputs(spec, dims, "normal", attributes, "float32", 3)
    chosen = torch.tensor([0, 2, dims[dim] - 1])
    cut = {a.name: inputs[a.name][chosen] if a.dims[0] == dim else inputs[a.name] for a in spec.inputs}
    whole, part = implementation.reference(inputs, attributes), implementation.reference(cut, attributes)
    for name, values in whole.items():
        torch.testing.assert_close(part[name], values[chosen], rtol=1e-12, atol=0)


def left_by(spec: OperatorSpec, inputs: Tensors, attributes: dict[str, float]) -> Collected:
    values = load_implementation(spec).honest(inputs, attributes)
    return Collected(values, {name: torch.zeros(v.shape, dtype=torch.bool) for name, v in values.items()})


@given(st.integers(0, 599), st.integers(0, 95), st.sampled_from(["poison", "nan", "inf"]))
@settings(max_examples=15, deadline=None)
def test_one_odd_element_is_found_wherever_it_lies(row: int, col: int, kind: str) -> None:
    spec, dims, attributes = NORM, {"rows": 600, "cols": 96}, all_attributes(NORM, {})
    inputs = make_inputs(spec, dims, "normal", attributes, "bfloat16", 5)
    collected = left_by(spec, inputs, attributes)
    collected.values["out"][row, col] = {"poison": 1e30, "nan": torch.nan, "inf": torch.inf}[kind]
    collected.untouched["out"][row, col] = kind == "poison"
    budget = rows.BUDGET
    rows.BUDGET = 96 * 60  # a tenth of the rows
    try:
        found = rows.check_rows(
            spec, dims, inputs, attributes, "bfloat16", collected, drawn(), Stage.CORRECTNESS, "measured x")
    finally:
        rows.BUDGET = budget
    assert found.rows < 100
    ((_, reason),) = found.faults
    assert reason.index == (row, col)
    assert reason.code == {"poison": "not_written", "nan": "nan_wrong", "inf": "inf_wrong"}[kind]


def test_wrong_values_in_a_chosen_row_are_named_by_their_place() -> None:
    spec, dims, attributes = NORM, {"rows": 600, "cols": 96}, all_attributes(NORM, {})
    inputs = make_inputs(spec, dims, "normal", attributes, "bfloat16", 5)
    collected = left_by(spec, inputs, attributes)
    collected.values["out"][599, 7] += 1.0
    found = rows.check_rows(
        spec, dims, inputs, attributes, "bfloat16", collected, drawn(), Stage.CORRECTNESS, "measured x")
    ((_, reason),) = found.faults
    assert reason.index == (599, 7)
    assert found.bound is not None and found.bound.index == (599, 7)


@pytest.mark.parametrize("operator", registry.NAMES)
def test_inputs_in_parts_have_shapes_dtypes_and_every_regime(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = registry.get(operator)
    monkeypatch.setattr(large, "CHUNK", 1)
    dims = {**SMALL[operator], rows.row_dim(spec): 14}
    attributes, regimes = all_attributes(spec, {}), spec.workloads["llm"].regimes
    made = large.make_large_inputs(spec, dims, regimes, attributes, "bfloat16", 9, "x")
    again = large.make_large_inputs(spec, dims, regimes, attributes, "bfloat16", 9, "x")
    assert list(made) == [argument.name for argument in spec.inputs]
    for argument in spec.inputs:
        values = made[argument.name]
        assert values.shape == torch.Size(dims[name] for name in argument.dims)
        assert values.dtype is dtype_of(argument.dtype or "bfloat16")
        assert torch.equal(values.nan_to_num(7.0), again[argument.name].nan_to_num(7.0))
    first = made[spec.inputs[0].name]
    assert len({tuple(row.flatten().tolist()) for row in first}) == 14


@pytest.mark.parametrize("operator", registry.NAMES)
@pytest.mark.parametrize("chunk", [1, 1 << 23])
def test_contents_in_memory_files_are_the_parts_bit_for_bit(operator: str, chunk: int,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """What decides is the plain way: every part by itself, one after the other."""
    monkeypatch.setattr(large, "CHUNK", chunk)
    spec, dim = registry.get(operator), rows.row_dim(registry.get(operator))
    assert dim is not None
    dims, regimes = {**SMALL[operator], dim: 7}, spec.workloads["llm"].regimes
    attributes = all_attributes(spec, {})
    if chunk == 1:
        parts = [make_inputs(spec, {**dims, dim: min(2, 7 - first)},
                             regimes[first % len(regimes):] + regimes[:first % len(regimes)], attributes, "bfloat16", 9,
                             "x", "part", number) for number, first in enumerate(range(0, 7, 2))]
    else:
        parts = [make_inputs(spec, dims, regimes, attributes, "bfloat16", 9, "x")]
    wanted = {a.name: torch.cat([part[a.name] for part in parts]) if a.dims[0] == dim else parts[0][a.name]
              for a in spec.inputs}
    made = large.make_large_inputs(spec, dims, regimes, attributes, "bfloat16", 9, "x")
    files = large.write_large_inputs(spec, dims, regimes, attributes, "bfloat16", 9, "x")
    with (Lending.of_files(spec, files, attributes, "bfloat16") as lent,
          Lending(spec, wanted, attributes, "bfloat16") as copied):
        for name, values in wanted.items():
            assert bits(made[name]) == bits(values) == bits(lent.inputs[name])
        for one, two in zip(lent.lent, copied.lent, strict=True):
            assert replace(one, fd=0) == replace(two, fd=0)
            if one.kind == "input":
                assert os.pread(one.fd, one.nbytes, 0) == os.pread(two.fd, two.nbytes, 0)


def test_contents_that_fail_leave_no_memory_file() -> None:
    before = sorted(Path("/proc/self/fd").iterdir())
    with pytest.raises(KeyError, match="no such regime"):
        large.write_large_inputs(NORM, {"rows": 4, "cols": 8}, ("no such regime",), all_attributes(NORM, {}),
                                 "bfloat16", 1)
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def bits(values: torch.Tensor) -> bytes:
    return values.contiguous().view(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("operator", registry.NAMES)
def test_announced_calls_are_the_calls_that_are_lent(operator: str) -> None:
    spec = registry.get(operator)
    for case in spec.cases:
        attributes = all_attributes(spec, case.attributes)
        dtype = case.dtype or "bfloat16"
        inputs = make_inputs(spec, case.dims, case.regime, attributes, dtype, 1)
        for gap in (ROW_GAP, 48):
            announced = documents_of(spec.arguments, Announced(case.dims, attributes, dtype, case.layout, gap))
            with Lending(spec, inputs, attributes, dtype, case.layout, gap=gap) as lending:
                assert announced == planning.lent_documents(lending.lent), case.name
        assert key_of(announced, attributes) != key_of(announced, {**attributes, "extra": 1.0})


def test_a_row_dimension_must_lead_everything() -> None:
    out = replace(NORM.outputs[0], dims=("cols", "rows"))
    turned = replace(NORM, arguments=(*NORM.inputs, out))
    assert rows.row_dim(turned) is None
