"""Outputs that are chosen, not computed: integers and values with no room, of one axis or two, with sizes of their own.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.codec import to_document
from harness.domain.vocabulary import Outcome
from harness.evaluation.judge.allowance import allowance_of
from harness.evaluation.judge.amounts import AMOUNTS
from harness.evaluation.judge.compare import compare
from harness.evaluation.judge.inputs import make_inputs
from harness.evaluation.judge.lending import Lending
from harness.evaluation.judge.oracle import expect, library_errors
from harness.evaluation.judge.rows import check_rows
from harness.evaluation.judge.seeds import generator
from harness.evaluation.judge.sensitivity import spiked
from harness.evaluation.judge.sizes import drawn_dims, near, sizes_of
from harness.evaluation.judge.trials import dims_of
from harness.evaluation.run import Place
from harness.operators import registry
from harness.operators.base import Span, Tolerance
from harness.operators.completeness import missing_parts
from harness.operators.implementation import load_implementation

TOPK, LOSS = registry.get("topk"), registry.get("cross_entropy")
DIMS = {"rows": 5, "cols": 40, "k": 7}


def problem(seed: int = 1, dtype: str = "bfloat16"):
    attributes = TOPK.attributes_for(DIMS, {})
    inputs = make_inputs(TOPK, DIMS, "normal", attributes, dtype, seed)
    return inputs, attributes, expect(TOPK, DIMS, inputs, attributes, dtype)


@given(seed=st.integers(0, 2**32), off=st.sampled_from([-1, 1, 2**40]))
@settings(max_examples=10, deadline=None)
def test_an_index_that_is_off_by_anything_is_refused_and_no_share_of_a_bound(seed: int, off: int) -> None:
    inputs, attributes, answers = problem(seed)
    right = load_implementation(TOPK).honest(inputs, attributes)["indices"]
    axes, nothing = ("rows", "k"), torch.zeros(right.shape, dtype=torch.bool)
    fine = compare("indices", axes, right, nothing, answers["indices"])
    assert (fine.finding, fine.worst_ratio, fine.error) == (None, 0.0, None)
    assert fine.bound is not None and to_document(fine.bound)["absolute"] == 0.0
    wrong = right.clone()
    wrong[3, 2] += off
    found = compare("indices", axes, wrong, nothing, answers["indices"])
    assert found.worst_ratio is None and found.finding is not None
    assert (found.finding.outcome, found.finding.index) == (Outcome.INCORRECT_NUMERIC, (3, 2))
    assert "must be that very value" in found.finding.text


def test_a_value_one_rounding_away_is_refused() -> None:
    inputs, attributes, answers = problem(dtype="float32")
    got = load_implementation(TOPK).honest(inputs, attributes)["values"]
    got[0, 0] = torch.nextafter(got[0, 0], torch.tensor(9.0))
    found = compare("values", ("rows", "k"), got, torch.zeros(got.shape, dtype=torch.bool), answers["values"])
    assert found.finding is not None and found.finding.index == (0, 0)


def test_integers_leave_no_room_whatever_the_tolerance_or_a_goal_say() -> None:
    whole = torch.arange(6).view(2, 3)
    loose = Tolerance("float32", factor=4.0, ulps=8.0, cap=1e-2, reason="test")
    found = allowance_of(whole.double(), whole, torch.ones(()), 0.0, loose, 9, relative=0.5)
    assert float(found.bound()) == 0.0
    assert found.rows(0, 1).at("indices", (0, 2), 1.0).absolute == 0.0


def test_library_errors_are_of_values_and_not_of_places_that_ties_leave_open() -> None:
    attributes = TOPK.attributes_for(DIMS, {})
    inputs = make_inputs(TOPK, DIMS, "few", attributes, "float32", 3)
    assert library_errors(TOPK, inputs, attributes) == 0.0


@given(st.sampled_from(list(Place)), st.integers(0, 2**63 - 1))
@settings(max_examples=30, deadline=None)
def test_drawn_k_is_never_above_the_columns_and_reaches_far(place: Place, seed: int) -> None:
    drawn = drawn_dims(TOPK, AMOUNTS[place], AMOUNTS[place].sizes, generator(seed))
    assert all(1 <= dims["k"] <= min(dims["cols"], 256) for dims in drawn)
    if place is Place.NUMBA:
        assert max(dims["k"] for dims in drawn) > 128
        assert any(dims["k"] > 16 and dims["cols"] > 5000 for dims in drawn)
    assert sizes_of(TOPK.domain, {"cols": 3, "rows": 1, "k": 9})["k"] == 3
    for dims in near(TOPK, {"rows": 4, "cols": 7, "k": 7}, 4):
        assert dims["k"] <= dims["cols"]


def test_outputs_have_the_sizes_that_an_attribute_gives() -> None:
    inputs, attributes, _ = problem()
    assert attributes == {"k": 7}
    with Lending(TOPK, inputs, attributes, "bfloat16") as lending:
        shapes = {item.name: (item.shape, item.dtype) for item in lending.lent}
    assert shapes["values"] == ((5, 7), "bfloat16") and shapes["indices"] == ((5, 7), "int64")
    assert dims_of(TOPK, inputs, {"k": 1, "other": 2}, {"k": 3}) == {"rows": 5, "cols": 40, "k": 3, "other": 2}


def test_an_attribute_that_is_a_size_must_agree_with_every_case() -> None:
    point = TOPK.cases[0]
    torn = replace(TOPK, cases=(replace(point, attributes={"k": 3}), *TOPK.cases[1:]))
    assert missing_parts(torn) == (f"k of {point.name!r} is not its size of k",)
    turned = replace(TOPK, domain={"rows": Span(1, 9), "k": Span(1, 9, within="cols"), "cols": Span(1, 9)})
    assert "k is within cols, which the domain does not name before it" in missing_parts(turned)


@pytest.mark.parametrize("ignored", [-100, 2])
def test_spiked_targets_stay_in_range_and_are_others(ignored: int) -> None:
    dims = {"rows": 12, "vocab": 6}
    attributes = LOSS.attributes_for(dims, {"ignore_index": ignored})
    inputs = make_inputs(LOSS, dims, "normal", attributes, "float32", 5)
    changed, still = spiked(LOSS, LOSS.inputs[1], inputs, generator(4))
    moved = changed["target"] != inputs["target"]
    assert int(moved.sum()) == 6 and len(still) == 0
    assert set(changed["target"].tolist()) <= set(inputs["target"].tolist())


def test_rows_of_an_output_of_one_axis_are_judged_by_themselves() -> None:
    from harness.domain.vocabulary import Stage
    from harness.evaluation.judge.lending import Collected

    dims = {"rows": 300, "vocab": 50}
    attributes = LOSS.attributes_for(dims, {})
    inputs = make_inputs(LOSS, dims, "normal", attributes, "bfloat16", 8)
    loss = load_implementation(LOSS).honest(inputs, attributes)["loss"]
    untouched = {"loss": torch.zeros(300, dtype=torch.bool)}
    right = check_rows(LOSS, dims, inputs, attributes, "bfloat16", Collected({"loss": loss}, untouched),
                       generator(1), Stage.CORRECTNESS, "case")
    assert not right.faults and right.rows == 300
    wrong = check_rows(LOSS, dims, inputs, attributes, "bfloat16", Collected({"loss": loss + 1e-3}, untouched),
                       generator(1), Stage.CORRECTNESS, "case")
    assert wrong.faults and wrong.faults[0][1].index is not None and len(wrong.faults[0][1].index) == 1
