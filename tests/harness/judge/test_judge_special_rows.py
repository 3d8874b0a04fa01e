"""Special values at sizes of every kind: among the rows of drawn sizes, and at the sizes that are timed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from harness.domain.vocabulary import Backend
from harness.evaluation.judge.amounts import AMOUNTS
from harness.evaluation.judge.lending import Lending
from harness.evaluation.judge.ring import Renewal
from harness.evaluation.judge.rows import row_dim
from harness.evaluation.judge.sizes import SINGLE, allowed, drawn_dims, kinds_by_size
from harness.evaluation.judge.special_rows import MOST_SHARE, kinds_of, with_special_rows
from harness.evaluation.judge.specials import special_calls
from harness.evaluation.run import Place
from harness.operators import registry
from harness.operators.base import OperatorSpec

OPERATORS = [pytest.param(spec, id=spec.name) for spec in registry.all_operators()]
NUMBA = AMOUNTS[Place.NUMBA]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("spec", OPERATORS)
def test_kinds_take_turns_from_size_to_size(spec: OperatorSpec) -> None:
    first, kinds = next(iter(spec.domain)), kinds_of(spec, "float32")
    drawn = drawn_dims(spec, NUMBA, NUMBA.sizes, generator(1))
    chosen = kinds_by_size(spec, NUMBA, drawn, kinds, generator(2))
    row = row_dim(spec)
    assert row is not None
    pairs = list(zip(chosen, drawn, strict=True))
    assert all(len(own) <= dims[row] // MOST_SHARE for own, dims in pairs if dims[row] > 1)
    single = [len(own) for own, dims in pairs if dims[row] == 1]
    assert max(single, default=0) <= 1 and sum(single) == len(single) - len(single) // SINGLE
    order = sorted(range(len(drawn)), key=lambda turn: drawn[turn][first])
    by_size = [kind for turn in order for kind in chosen[turn] if drawn[turn][row] > 1]
    assert len(by_size) > 5 * len(kinds)
    for start in range(len(by_size) - len(kinds)):
        assert set(by_size[start : start + len(kinds)]) == set(kinds)


@pytest.mark.parametrize("operator", ["rms_norm", "softmax", "add_rms_norm", "layer_norm", "swiglu", "topk"])
def test_every_kind_meets_rows_between_the_listed_ones_and_the_longest(operator: str) -> None:
    spec = registry.get(operator)
    kinds = kinds_of(spec, "float32")
    for seed in range(3):
        drawn = drawn_dims(spec, NUMBA, NUMBA.sizes, generator(seed))
        chosen = kinds_by_size(spec, NUMBA, drawn, kinds, generator(seed))
        met = {kind for own, dims in zip(chosen, drawn, strict=True) if 1024 < dims["cols"] <= 4096 for kind in own}
        assert met == set(kinds), seed


def test_rows_are_replaced_in_a_copy_and_what_they_share_stays() -> None:
    spec, dims = registry.get("rms_norm"), {"rows": 6, "cols": 40}
    plain = {"x": torch.ones(6, 40), "weight": torch.ones(40)}
    mixed, again = (with_special_rows(spec, dims, plain, ("nan", "zeros", "neg_inf", "huge"), {"eps": 1e-6}, "float32",
                                      5, "name") for _ in range(2))
    changed = (mixed["x"] != 1).any(-1)
    assert int(changed.sum()) == 3 and bool((plain["x"] == 1).all())
    assert bool(mixed["x"].isnan().any()) and bool((mixed["x"] == 0).all(-1).any())
    assert mixed["weight"] is plain["weight"]
    assert torch.equal(mixed["x"].nan_to_num(7.0), again["x"].nan_to_num(7.0))


def test_a_single_row_is_special_or_ordinary() -> None:
    spec, inputs = registry.get("softmax"), {"x": torch.ones(1, 40)}
    dims = {"rows": 1, "cols": 40}
    assert with_special_rows(spec, dims, inputs, (), {}, "float32", 5) is inputs
    assert with_special_rows(spec, dims, inputs, ("nan", "zeros"), {}, "float32", 5)["x"].isnan().any()


@pytest.mark.parametrize("spec", OPERATORS)
@pytest.mark.parametrize("place", list(Place))
def test_measured_sizes_have_calls_of_their_own_within_the_amounts(spec: OperatorSpec, place: Place) -> None:
    backend = Backend.NUMBA if place is Place.NUMBA else Backend.TRITON
    amounts, dtypes = AMOUNTS[place], ["float32"] if place is Place.NUMBA else ["bfloat16", "float16", "float32"]
    measured = [point.dims for point in spec.workloads["llm"].shapes[backend]]
    usual = len(special_calls(spec, amounts, dtypes, generator(3)))
    calls = special_calls(spec, amounts, dtypes, generator(3), measured)[usual:]
    first, row = next(iter(spec.domain)), row_dim(spec)
    assert len(calls) <= amounts.special_measured * (1 + len(spec.shared_regimes))
    if place is Place.NUMBA:
        assert {call.dims[first] for call in calls} == {dims[first] for dims in measured}
    for call in calls:
        assert any(call.dims[dim] == dims[dim] for dims in measured for dim in dims if dim != row)
        assert work_fits(spec, place, call.dims) and call.dtype == dtypes[0]
        assert row is not None and len(call.kinds) == min(call.dims[row], len(kinds_of(spec, call.dtype)))
    lengths = {call.dims[first] for call in calls} if place is Place.NUMBA else set()
    assert {(call.dims[first], kind) for call in calls for kind in call.kinds} >= {
        (length, kind) for length in lengths for kind in spec.shared_regimes}


def work_fits(spec: OperatorSpec, place: Place, dims: dict[str, int]) -> bool:
    return allowed(spec, replace(AMOUNTS[place], elements=AMOUNTS[place].special_elements), dims)


def test_a_slot_of_a_ring_holds_special_rows_until_it_is_renewed() -> None:
    spec = registry.get("softmax")
    inputs = {"x": torch.ones(64, 40)}
    with Lending(spec, inputs, {}, "float32", renewable=True) as lending:
        renewal = Renewal([lending], 3, "name")
        assert renewal.special(lending)
        held = lending.inputs["x"]
        assert bool(held.isnan().any()) and bool(torch.isneginf(held).any())
        renewal.renew([lending])
        assert bool(((lending.inputs["x"] >= 0.75) & (lending.inputs["x"] <= 1)).all())


def test_what_is_in_use_by_a_count_alone_stays_beside_special_queries() -> None:
    spec = registry.get("decode_attention")
    inputs = {"q": torch.ones(40, 2, 8), "k_cache": torch.ones(40, 6, 1, 8), "v_cache": torch.ones(40, 6, 1, 8),
              "seq_lens": torch.full((40,), 6, dtype=torch.int32)}
    with Lending(spec, inputs, {"scale": 1.0}, "float32", renewable=True) as lending:
        assert Renewal([lending], 3, "name").special(lending)
        assert int((lending.inputs["q"] != 1).flatten(1).any(-1).sum()) > 10
        assert bool((lending.inputs["k_cache"] == 1).all() and (lending.inputs["v_cache"] == 1).all())
