"""Bounds, comparison and localisation as properties."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.vocabulary import Outcome
from harness.evaluation.judge.compare import compare
from harness.evaluation.judge.oracle import Expected, InvalidReference, bound_of, expect
from harness.evaluation.judge.words import pattern_of
from harness.operators import registry
from harness.operators.base import Tolerance
from harness.operators.implementation import load_implementation

AXES = ("rows", "cols")
TOLERANCE = Tolerance("float32", factor=4.0, ulps=6.0, cap=1e-4, reason="test")
SIZES = st.tuples(st.integers(1, 6), st.integers(1, 9))


def answer(values: torch.Tensor, bound: float = 1e-3) -> Expected:
    return Expected(values.double(), torch.full(values.shape, bound, dtype=torch.float64), None)


def nothing(values: torch.Tensor) -> torch.Tensor:
    return torch.zeros(values.shape, dtype=torch.bool)


@given(SIZES, st.integers(0, 2**31), st.data())
def test_one_wrong_element_is_found_where_it_is(size: tuple[int, int], seed: int, data: st.DataObject) -> None:
    values = torch.randn(size, generator=torch.Generator().manual_seed(seed))
    index = tuple(data.draw(st.integers(0, extent - 1)) for extent in size)
    right = answer(values)
    assert compare("out", AXES, values, nothing(values), right).finding is None
    got = values.clone()
    got[index] += 0.01
    found = compare("out", AXES, got, nothing(values), right).finding
    assert found is not None
    assert found.outcome is Outcome.INCORRECT_NUMERIC
    assert found.index == index
    assert found.bound == pytest.approx(1e-3)
    assert found.got == pytest.approx(float(values[index]) + 0.01, abs=1e-6)


@given(SIZES, st.data(), st.sampled_from([math.nan, math.inf, -math.inf]), st.booleans())
def test_nan_and_infinity_must_be_where_they_belong(
    size: tuple[int, int], data: st.DataObject, odd: float, in_answer: bool
) -> None:
    index = tuple(data.draw(st.integers(0, extent - 1)) for extent in size)
    plain = torch.ones(size)
    with_odd = plain.clone()
    with_odd[index] = odd
    got, right = (plain, with_odd) if in_answer else (with_odd, plain)
    found = compare("out", AXES, got, nothing(plain), answer(right)).finding
    assert found is not None
    assert found.outcome is Outcome.INCORRECT_NAN
    assert found.index == index
    assert compare("out", AXES, with_odd, nothing(plain), answer(with_odd)).finding is None


def test_infinities_of_either_sign_differ() -> None:
    right = answer(torch.tensor([[math.inf, 1.0]]))
    found = compare("out", AXES, torch.tensor([[-math.inf, 1.0]]), torch.zeros(1, 2, dtype=torch.bool), right).finding
    assert found is not None
    assert found.code == "inf_wrong"


def test_memory_that_was_never_written_is_named_even_where_nan_is_expected() -> None:
    values = torch.tensor([[1.0, 2.0, math.nan]])
    got = torch.tensor([[1.0, 2.0, 1e30]])
    untouched = torch.tensor([[False, False, True]])
    found = compare("out", AXES, got, untouched, answer(values)).finding
    assert found is not None
    assert (found.code, found.index, found.got) == ("not_written", (0, 2), "not written")


@given(st.integers(2, 8), st.integers(2, 12), st.data())
def test_a_wrong_tail_is_called_a_tail(rows: int, cols: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, cols - 1))
    wrong = torch.zeros(rows, cols, dtype=torch.bool)
    wrong[:, first:] = True
    pattern = pattern_of(wrong, AXES)
    assert pattern.code == "tail_wrong"
    assert f"of {cols}" in pattern.words


@pytest.mark.parametrize(
    ("axes", "place", "code", "words"),
    [
        (AXES, (slice(2, 3), slice(None)), "row_wrong", "only in row 2 of 6"),
        (AXES, (slice(5, 6), slice(None)), "row_wrong", "only in row 5 of 6 (the last)"),
        (AXES, (slice(0, 2), slice(None)), "row_wrong", "only in the first 2 of 6 rows"),
        (AXES, (slice(None), slice(0, 8, 2)), "every_nth_wrong", "in every 2nd column from 0"),
        (AXES, (slice(None), slice(2, 5)), "numeric_wrong", "only in columns 2 to 4 of 8"),
        (("q_heads", "dim"), (slice(3, 6), slice(None)), "head_wrong", "only in the last 3 of 6 query heads (from 3)"),
        (AXES, (slice(None), slice(None)), "all_wrong", "every element"),
    ],
)
def test_places_in_words(axes: tuple[str, ...], place: tuple[slice, slice], code: str, words: str) -> None:
    wrong = torch.zeros(6, 8, dtype=torch.bool)
    wrong[place] = True
    pattern = pattern_of(wrong, axes)
    assert pattern.code == code
    assert words in pattern.words


@given(st.integers(1, 100_000), st.floats(1e-30, 1e30), st.floats(0, 1e4))
def test_bounds_are_positive_scale_with_the_data_and_stay_under_the_cap(length: int, scale: float, care: float) -> None:
    reference = torch.full((1, 3), scale, dtype=torch.float64)
    bound = bound_of(reference, reference.float(), reference.abs(), care, TOLERANCE, length)
    assert (bound > 0).all()
    assert (bound <= TOLERANCE.cap * scale + 2.5e-38).all()
    longer = bound_of(reference, reference.float(), reference.abs(), care, TOLERANCE, 4 * length)
    assert (longer >= bound).all()


@given(st.floats(1e-6, 1e-3))
def test_an_honest_error_widens_its_own_row_only_and_never_past_the_cap(error: float) -> None:
    reference = torch.ones(2, 4, dtype=torch.float64)
    honest = reference.float().clone()
    honest[0, 1] += error
    bound = bound_of(reference, honest, reference, 0.0, TOLERANCE, 16)
    assert (bound[0] >= min(4 * error * 0.9, TOLERANCE.cap)).all()
    assert (bound[0] <= TOLERANCE.cap * 1.0001).all()
    assert (bound[1] < 1e-6).all()


def test_a_goals_own_tolerance_replaces_the_bound() -> None:
    reference = torch.full((1, 2), 3.0, dtype=torch.float64)
    bound = bound_of(reference, reference.float(), reference, 0.0, TOLERANCE, 16, relative=0.01)
    assert bound[0, 0].item() == pytest.approx(0.03)


def test_a_half_precision_sum_is_far_outside_the_bound() -> None:
    spec = registry.get("rms_norm")
    dims, attributes = {"rows": 2, "cols": 4096}, {"eps": 1e-6}
    module = load_implementation(spec)
    given_ = module.make_inputs(dims, ("normal",), torch.bfloat16, torch.Generator().manual_seed(0), attributes)
    right = expect(spec, dims, given_, attributes, "bfloat16")["out"]
    total = torch.zeros(2, 1, dtype=torch.bfloat16)
    for col in range(4096):
        total += given_["x"][:, col : col + 1] ** 2
    scale = torch.rsqrt(total.float() / 4096 + 1e-6)
    got = (given_["x"].float() * scale * given_["weight"].float()).bfloat16()
    found = compare("out", AXES, got, torch.zeros(2, 4096, dtype=torch.bool), right)
    assert found.worst_ratio is not None
    assert found.worst_ratio > 10


def test_a_reference_that_its_honest_twin_contradicts_is_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = registry.get("softmax")
    module = load_implementation(spec)
    inputs = module.make_inputs(
        {"rows": 2, "cols": 8}, ("normal",), torch.float32, torch.Generator().manual_seed(0), {}
    )
    monkeypatch.setattr(module, "reference", lambda given, attributes: {"out": torch.full((2, 8), torch.nan).double()})
    with pytest.raises(InvalidReference, match="The candidate was not judged"):
        expect(spec, {"rows": 2, "cols": 8}, inputs, {}, "float32")
