"""Special values at large sizes and in every dtype: what is drawn, that contents are fair, and what is noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from harness.evaluation.judge.amounts import AMOUNTS, Amounts
from harness.evaluation.judge.compare import compare
from harness.evaluation.judge.oracle import expect
from harness.evaluation.judge.rows import row_dim
from harness.evaluation.judge.sizes import ENDS, work
from harness.evaluation.judge.specials import Call, kinds_of, shared_out, special_calls
from harness.evaluation.run import Place
from harness.operators import registry
from harness.operators.base import OperatorSpec
from harness.operators.implementation import Tensors
from harness.operators.values import ends_and_edges, rows_of
from tests.harness.judge.simulated import Numerics, run_kernel

OPERATORS = [pytest.param(spec, id=spec.name) for spec in registry.all_operators()]
HALVES = ["bfloat16", "float16"]
DTYPES = {Place.NUMBA: ["float32"], Place.INTERPRETER: [*HALVES, "float32"], Place.DEVICE: [*HALVES, "float32"]}
LONG_ROWS = ["rms_norm", "softmax", "add_rms_norm", "layer_norm", "swiglu", "cross_entropy", "topk"]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def calls_of(spec: OperatorSpec, place: Place, seed: int, **changed: int) -> list[Call]:
    amounts: Amounts = replace(AMOUNTS[place], **changed)
    return special_calls(spec, amounts, DTYPES[place], generator(seed))


def highest_third(spec: OperatorSpec) -> int:
    span = next(iter(spec.domain.values()))
    return int(span.low * ((span.high + 1) / span.low) ** (2 / 3))


@pytest.mark.parametrize("spec", OPERATORS)
def test_every_kind_meets_the_highest_third_of_sizes_in_every_round(spec: OperatorSpec) -> None:
    first = next(iter(spec.domain))
    for seed in range(20):
        calls = calls_of(spec, Place.NUMBA, seed)
        met = {kind for call in calls for kind in call.kinds if call.dims[first] >= highest_third(spec) * 0.99}
        assert met >= set(kinds_of(spec, "float32")), seed
        assert {kind for call in calls for kind in call.kinds} >= {*spec.shared_regimes, ENDS}


@pytest.mark.parametrize("operator", LONG_ROWS)
def test_every_kind_meets_rows_of_more_than_a_short_loop_can_count(operator: str) -> None:
    spec = registry.get(operator)
    for seed in range(20):
        calls = [call for call in calls_of(spec, Place.NUMBA, seed) if call.dims[next(iter(spec.domain))] > 32768]
        assert {kind for call in calls for kind in call.kinds} >= set(kinds_of(spec, "float32")), seed


@pytest.mark.parametrize("spec", OPERATORS)
def test_a_device_meets_every_kind_in_half_precision_too(spec: OperatorSpec) -> None:
    for seed in range(20):
        calls = calls_of(spec, Place.DEVICE, seed)
        assert {call.dtype for call in calls} == {*HALVES, "float32"}
        for dtype in HALVES:
            met = {kind for call in calls if call.dtype == dtype for kind in call.kinds}
            # Caches of the largest sizes leave room for few sequences.
            assert spec.name == "decode_attention" or met >= set(kinds_of(spec, dtype)), (seed, dtype)


@pytest.mark.parametrize("spec", OPERATORS)
@pytest.mark.parametrize("place", list(Place))
def test_calls_stay_within_the_domain_and_few(spec: OperatorSpec, place: Place) -> None:
    amounts = AMOUNTS[place]
    for seed in range(10):
        calls = calls_of(spec, place, seed)
        assert len(calls) <= 15
        for call in calls:
            for dim, span in spec.domain.items():
                own = call.dims[dim] // (call.dims[span.times] if span.times else 1)
                assert span.low <= own <= span.high, (dim, call)
            # One row of the longest may be more by itself.
            assert len(call.kinds) == 1 or work(spec, call.dims) <= amounts.special_elements, call


def test_every_attribute_of_the_cases_comes_in_a_round() -> None:
    spec = registry.get("cross_entropy")
    known = {case.attributes["ignore_index"] for case in spec.cases}
    for seed in range(5):
        assert {call.attributes["ignore_index"] for call in calls_of(spec, Place.NUMBA, seed)} == known


def test_rows_hold_their_kinds_and_equal_seeds_give_equal_contents() -> None:
    call = Call({"rows": 9, "cols": 5000}, ("all_neg_inf", "nan", ENDS), "float16", {})
    x, again = (shared_out(registry.get("softmax"), call, 7, "name")["x"] for _ in range(2))
    assert x.dtype is torch.float16
    assert torch.equal(x.nan_to_num(0.5), again.nan_to_num(0.5))
    assert torch.isneginf(x[:3]).all(-1).any() and not torch.isneginf(x[3:]).any()
    assert torch.isnan(x[3:6]).any() and not torch.isnan(x[6:]).any()
    assert (x[6:, [0, -1]] >= 1000).all() and (x[6:, 0] == x[6:, -1]).all()


def test_what_all_rows_share_is_plain_beside_many_kinds_and_special_alone() -> None:
    spec = registry.get("rms_norm")
    mixed = shared_out(spec, Call({"rows": 6, "cols": 300}, ("wide", "nan"), "float32", {}), 3, "name")
    alone = shared_out(spec, Call({"rows": 6, "cols": 300}, ("special_weights",), "float32", {}), 3, "name")
    assert torch.isfinite(mixed["weight"]).all() and mixed["weight"].abs().max() < 10
    assert not torch.isfinite(alone["weight"]).all()


@pytest.mark.parametrize("size", [1, 2, 9, 1000, 131072])
def test_ends_are_the_first_and_the_last_place_and_both_sides_of_blocks(size: int) -> None:
    for seed in range(20):
        places = ends_and_edges(size, generator(seed)).tolist()
        assert places == sorted(set(places)) and places[0] == 0 and places[-1] == size - 1
        inner = [place for place in places[1:-1] if place % 8 not in (0, 7)]
        assert not inner, places


@pytest.mark.parametrize("spec", OPERATORS)
@pytest.mark.parametrize("seed", [1, 2])
def test_honest_sums_in_float32_pass_in_every_dtype(spec: OperatorSpec, seed: int) -> None:
    for call in calls_of(spec, Place.DEVICE, seed, special_elements=120_000, special_others=0):
        assert not faults(spec, call, seed, lambda inputs, attributes: run_kernel(
            spec.name, inputs, attributes, Numerics(serial=False))), call


def faults(spec: OperatorSpec, call: Call, seed: int, kernel: object) -> list[str]:
    inputs, attributes = shared_out(spec, call, seed, "name"), spec.attributes_for(call.dims, call.attributes)
    answers = expect(spec, call.dims, inputs, attributes, call.dtype)
    made: Tensors = kernel(inputs, attributes)  # type: ignore[operator]
    found = [compare(argument.name, argument.dims, made[argument.name],
                     torch.zeros(made[argument.name].shape, dtype=torch.bool), answers[argument.name]).finding
             for argument in spec.outputs if argument.name in made]
    return [finding.text for finding in found if finding is not None]


def one_left_out(inputs: Tensors, attributes: dict[str, float]) -> Tensors:
    """A softmax whose last column is not in the sum."""
    x = inputs["x"].float()
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    return {"out": (powers / powers[:, :-1].sum(-1, keepdim=True)).to(inputs["x"].dtype)}


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
def test_a_last_column_left_out_of_long_rows_shows_by_equal_spikes_alone(dtype: str) -> None:
    spec = registry.get("softmax")
    dims = {"rows": 2, "cols": 60_001}
    if dtype != "float32":  # too little for half precision to show among others
        assert not faults(spec, Call(dims, ("normal",), dtype, {}), 5, one_left_out)
    assert faults(spec, Call(dims, (ENDS,), dtype, {}), 5, one_left_out)


def one_pass(inputs: Tensors, attributes: dict[str, float]) -> Tensors:
    """A layer norm whose variance is the mean square less the squared mean."""
    x, weight, bias = (inputs[name].float() for name in ("x", "weight", "bias"))
    mean = x.mean(-1, keepdim=True)
    variance = (x.square().mean(-1, keepdim=True) - mean.square()).clamp_min(0.0)
    scaled = (x - mean) * torch.rsqrt(variance + attributes["eps"])
    return {"out": (scaled * weight + bias).to(inputs["x"].dtype)}


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_variance_in_one_pass_shows_in_every_dtype(dtype: str, seed: int) -> None:
    call = Call({"rows": 8, "cols": 1500}, ("far_steps",), dtype, {})
    assert faults(registry.get("layer_norm"), call, seed, one_pass)


def joined(values: torch.Tensor, lanes: int) -> torch.Tensor:
    """Sum of squared deviations of one row in float32: running means of lanes, joined as d d n m / (n + m)."""
    parts = [values[lane::lanes] for lane in range(lanes)]
    count, mean = torch.tensor(float(len(parts[0]))), parts[0].mean()
    spread = (parts[0] - mean).square().sum()
    for part in parts[1:]:
        more, apart = torch.tensor(float(len(part))), part.mean() - mean
        spread = spread + (part - part.mean()).square().sum() + apart * apart * count * more / (count + more)
        mean, count = mean + apart * more / (count + more), count + more
    return spread


@pytest.mark.parametrize("cols", [90, 3000, 100_000])
def test_the_largest_squares_leave_room_for_joining_means_of_parts(cols: int) -> None:
    spec = registry.get("layer_norm")
    inputs = shared_out(spec, Call({"rows": 4, "cols": cols}, ("largest_squares",), "float32", {}), 1, "name")
    for row in inputs["x"]:
        right = float((row.double() - row.double().mean()).square().sum())
        assert right > 1e35
        assert float(joined(row, 8)) == pytest.approx(right, rel=1e-4)


def test_far_steps_are_exact_in_every_dtype() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = rows_of("far_steps", 20, 3000, dtype, generator(1))
        assert torch.equal(x.to(dtype).float(), x)
        assert all(len(row.unique()) == 2 for row in x)


def test_kinds_for_rows_alone_leave_out_what_is_shared_and_what_is_short() -> None:
    spec = registry.get("layer_norm")
    assert row_dim(spec) == "rows"
    assert "special_weights" not in kinds_of(spec, "bfloat16")
    assert "one_hot" in kinds_of(spec, "bfloat16") and "one_hot" not in kinds_of(spec, "float32")
    assert {"nan", "far_steps", ENDS} <= set(kinds_of(spec, "float16"))


def test_half_precision_sums_with_what_all_rows_share_stay_in_range() -> None:
    """Rows of every kind are joined beside one b, which is none of those that they were made with."""
    spec = registry.get("matmul_bias_gelu")
    kinds = tuple(kinds_of(spec, "float16"))
    # Sums of two terms differ most between two b; seed 7 once left the range of float16.
    many, few = {"k": 2, "n": 50, "m": 46466}, {"k": 2, "n": 900, "m": 2700}
    for seed, dims in [(7, many), *((seed, few) for seed in range(9))]:
        call = Call(dims, kinds, "float16", {})
        inputs = shared_out(spec, call, seed, "joined")
        expect(spec, dims, inputs, {}, "float16")  # raises where honest sums overflow
        sums = inputs["a"].double().nan_to_num(0.0) @ inputs["b"].double()
        assert 2e4 < float(sums.abs().max()) < 6.5e4
