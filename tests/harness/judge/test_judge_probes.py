"""The probes: what they draw, what they notice, and that a device is told of all of it beforehand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.vocabulary import Backend, Outcome, Purpose, Stage
from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.amounts import AMOUNTS
from harness.evaluation.judge.inputs import all_attributes, make_inputs
from harness.evaluation.judge.oracle import expect
from harness.evaluation.judge.probes import probes
from harness.evaluation.judge.sensitivity import spiked
from harness.evaluation.judge.session import session_of
from harness.evaluation.judge.sizes import (
    GAP,
    drawn_dims,
    drawn_sizes,
    near,
    next_prime,
    programs,
    sizes_of,
    stratified,
    work,
)
from harness.evaluation.judge.smoke import smoke
from harness.evaluation.judge.trials import usual_dtype
from harness.evaluation.run import Place, Refused, Run
from harness.operators import registry
from harness.operators.base import OperatorSpec
from harness.operators.implementation import load_implementation
from tests.harness.judge.evaluations import judged, make_run
from tests.harness.judge.plain_worker import PlainOpener
from tests.harness.judge.simulated import Numerics, run_kernel
from tests.harness.judge.torch_worker import TorchOpener

OPERATORS = [pytest.param(spec, id=spec.name) for spec in registry.all_operators()]
RMS_NORM = registry.get("rms_norm")
BASELINE = RMS_NORM.baseline(Backend.NUMBA)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.integers(0, 2**63 - 1))
def test_a_round_meets_every_residue_class_it_promises(seed: int) -> None:
    amounts = AMOUNTS[Place.NUMBA]
    leading = amounts.sizes - amounts.sizes // 4
    sizes = stratified(leading, 1, 131072, generator(seed))
    assert min(sizes) >= 1 and max(sizes) <= 131072
    for modulus in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128):
        assert {size % modulus for size in sizes} == set(range(modulus))
    before_promotion = stratified(amounts.promotion_sizes * 3 // 4, 1, 131072, generator(seed))
    assert len({size % 384 for size in before_promotion}) == 384


@given(st.integers(1, 400), st.integers(1, 6000), st.integers(0, 2**63 - 1))
def test_drawn_sizes_stay_in_their_range_whatever_it_is(count: int, largest: int, seed: int) -> None:
    sizes = stratified(count, 1, largest, generator(seed))
    assert len(sizes) == count
    assert all(1 <= size <= largest for size in sizes)
    assert len({size % min(384, largest) for size in sizes}) == min(count, 384, largest)


@given(st.sampled_from(registry.all_operators()), st.sampled_from(list(Place)), st.integers(0, 2**63 - 1))
@settings(max_examples=60, deadline=None)
def test_draws_keep_to_the_domain_and_to_the_work_that_is_allowed(spec: OperatorSpec, place: Place, seed: int) -> None:
    amounts = AMOUNTS[place]
    drawn = drawn_dims(spec, amounts, amounts.sizes, generator(seed))
    assert len(drawn) == amounts.sizes
    for dims in drawn:
        assert set(dims) == set(spec.domain)
        own = dict(dims)
        for dim, span in spec.domain.items():
            if span.times:
                assert dims[dim] % dims[span.times] == 0
                own[dim] = dims[dim] // dims[span.times]
            assert span.low <= own[dim] <= span.high
        least = {dim: span.low for dim, span in spec.domain.items()}
        alone = [sizes_of(spec.domain, least | {dim: own[dim]}) for dim in spec.domain]
        assert work(spec, dims) <= max(amounts.elements, *(work(spec, given) for given in alone))
        assert not amounts.programs or programs(spec, dims) <= amounts.programs


MET = {
    "rms_norm": {
        "columns above 6,000": lambda dims: dims["cols"] > 6000,
        "vocabularies": lambda dims: dims["cols"] > 65537,
        "rows from 600 on": lambda dims: dims["rows"] >= 600,
        "rows from 20,000 on": lambda dims: dims["rows"] >= 20_000,
        "more than 140,000 elements": lambda dims: dims["rows"] * dims["cols"] > 140_000,
    },
    "decode_attention": {
        "five query heads or more per cache head": lambda dims: dims["q_heads"] >= 5 * dims["kv_heads"],
        "more than eight query heads": lambda dims: dims["q_heads"] > 8,
        "more than five cache heads": lambda dims: dims["kv_heads"] > 5,
        "columns above 128": lambda dims: dims["dim"] > 128,
        "positions from 1,025 to 4,098": lambda dims: 1024 < dims["max_seq"] < 4099,
        "positions above 4,099": lambda dims: dims["max_seq"] > 4099,
        "more than 1,000 sequences": lambda dims: dims["batch"] > 1000,
    },
}


@pytest.mark.parametrize("operator", MET)
def test_a_round_reaches_every_part_of_the_domain(operator: str) -> None:
    spec, amounts = registry.get(operator), AMOUNTS[Place.NUMBA]
    for seed in range(40):
        drawn = drawn_dims(spec, amounts, amounts.sizes, generator(seed))
        for words, meets in MET[operator].items():
            assert any(map(meets, drawn)), (seed, words)


def test_a_device_meets_long_rows_and_many_of_them_in_every_round() -> None:
    amounts = AMOUNTS[Place.DEVICE]
    for seed in range(100):
        drawn = drawn_dims(RMS_NORM, amounts, amounts.sizes, generator(seed))
        assert max(dims["cols"] for dims in drawn) > 20_000
        assert max(dims["rows"] for dims in drawn) >= 600


@given(st.integers(1, 10_000))
def test_the_next_prime(number: int) -> None:
    found = next_prime(number)
    assert found > number
    primes = [n for n in range(max(2, number + 1), found + 1) if all(n % d for d in range(2, int(n**0.5) + 1))]
    assert primes == [found]


@pytest.mark.parametrize("spec", OPERATORS)
@pytest.mark.parametrize("backend", list(Backend))
def test_shapes_beside_the_measured_ones_stay_small(spec: OperatorSpec, backend: Backend) -> None:
    free = {dim: span for dim, span in spec.domain.items() if span.low < span.high}
    for point in spec.workloads["llm"].shapes[backend]:
        shapes = near(spec, point.dims, 2)
        assert len(shapes) == 3 * len(free)
        for dim, span in free.items():
            near_by = {dims[dim] // (dims[span.times] if span.times else 1) for dims in shapes}
            own = point.dims[dim] // (point.dims[span.times] if span.times else 1)
            assert {own + 1, max(1, own - 1)} <= near_by
        assert all(dims[dim] % dims[span.times] == 0 for dims in shapes for dim, span in spec.domain.items()
                   if span.times)
        assert all(spec.bytes_per_call(dims, 2) <= 4 << 20 for dims in shapes)


def on_device(spec: OperatorSpec, opener: TorchOpener, purpose: Purpose = Purpose.ROUND) -> Run:
    run = make_run(spec, Backend.TRITON, "", opener)
    run.request = replace(run.request, purpose=purpose)
    run.device = "nvidia-h200"
    return run


@pytest.mark.parametrize("spec", OPERATORS)
def test_a_device_is_told_of_every_call_before_the_first_one(spec: OperatorSpec) -> None:
    opener = TorchOpener(spec)
    run = on_device(spec, opener)
    run.stage = Stage.SMOKE
    smoke(run)
    worker = opener.workers[0]
    made, told = len(worker.called), len(worker.announced)
    states = []
    call = worker.call
    worker.call = lambda *given: (states.append(len(worker.announced)), call(*given))[1]  # type: ignore[method-assign]
    run.stage = Stage.PROBES
    probes(run)
    assert worker.closed
    assert set(states) == {len(worker.announced)}
    announced = worker.announced[told:]
    assert len(worker.called) - made >= len(announced) + AMOUNTS[Place.DEVICE].repeats - 2
    answered = {case.dtype or "bfloat16" for case in spec.interpret_cases}
    assert {call.dtype for call in announced} == {"bfloat16", *answered}  # exact problems come in every dtype
    assert {"dense", "offset"} <= {call.layout for call in worker.announced}
    rows = spec.outputs[0].dims[0]
    assert AMOUNTS[Place.DEVICE].wide_rows in {call.dims[rows] for call in announced}


@pytest.mark.parametrize("spec", OPERATORS)
@pytest.mark.parametrize(("sums", "outcome"), [("float32", Outcome.PASSED), ("float16", Outcome.INCORRECT_NUMERIC)])
def test_only_the_precision_of_a_sum_decides_on_a_device(spec: OperatorSpec, sums: str, outcome: Outcome) -> None:
    how = Numerics(sums=sums, serial=False)
    run = on_device(spec, TorchOpener(spec, lambda inputs, at: run_kernel(spec.name, inputs, at, how)))
    run.stage = Stage.PROBES
    found, reasons = Outcome.PASSED, ()
    try:
        probes(run)
    except Refused as refused:
        found, reasons = refused.outcome, refused.reasons
    assert found is (Outcome.PASSED if spec.tolerances[usual_dtype(run)].exact else outcome), reasons  # nothing summed


def test_drawn_rows_are_apart_by_drawn_distances_aligned_and_not() -> None:
    run = on_device(RMS_NORM, TorchOpener(RMS_NORM))
    run.stage = Stage.PROBES
    gaps = [trial.problem.gap for trial in drawn_sizes(run, session_of(run)) if trial.problem.layout == "strided"]
    assert gaps[0] % 16 == 0
    assert len(gaps) >= 3
    assert all(1 <= gap <= GAP for gap in gaps)


@pytest.mark.parametrize("seed", range(20))
def test_one_draw_is_in_the_highest_sixth_of_every_dimension(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    for dim, span in RMS_NORM.domain.items():
        sizes = [dims[dim] for dims in drawn_dims(RMS_NORM, AMOUNTS[Place.DEVICE], 12, draw)]
        assert max(sizes) >= span.low * ((span.high + 1) / span.low) ** (5 / 6) * 0.97, (dim, sizes)


def test_a_promotion_draws_more_and_looks_beside_the_measured_shapes() -> None:
    counts = {}
    for purpose in (Purpose.ROUND, Purpose.PROMOTION):
        run = on_device(RMS_NORM, TorchOpener(RMS_NORM), purpose)
        run.stage = Stage.PROBES
        session = session_of(run)
        problems = [trial.problem for trial in drawn_sizes(run, session)]
        counts[purpose] = len(problems)
        assert len({problem.name for problem in problems}) == len(problems)
        for problem in problems:
            assert {name: tuple(value.shape) for name, value in problem.inputs.items()} == {
                argument.name: tuple(problem.dims[dim] for dim in argument.dims) for argument in RMS_NORM.inputs}
        session.close()
    beside = 3 * len(RMS_NORM.domain) * len(RMS_NORM.workloads["llm"].shapes[Backend.TRITON])
    assert counts == {Purpose.ROUND: AMOUNTS[Place.DEVICE].sizes,
                      Purpose.PROMOTION: AMOUNTS[Place.DEVICE].promotion_sizes + beside}


@pytest.mark.parametrize("spec", OPERATORS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_spike_that_nobody_answers_is_outside_the_bound(spec: OperatorSpec, dtype: str, seed: int) -> None:
    """For every input: answers to the unchanged problem are wrong in the rows that were spiked. A key that nobody
    attends to may lose its last weight unseen in half precision, so one row in six may be missing."""
    case = next(case for case in spec.cases if case.smoke)
    rows = spec.outputs[0].dims[0]
    dims, attributes = {**case.dims, rows: 12}, all_attributes(spec, case.attributes)
    base = make_inputs(spec, dims, "normal", attributes, dtype, seed)
    stale = load_implementation(spec).honest(base, attributes)
    for argument in spec.inputs:
        inputs, still = spiked(spec, argument, base, generator(seed))
        fooled = torch.zeros(12, dtype=torch.bool)
        for name, right in expect(spec, dims, inputs, attributes, dtype).items():
            fooled |= ((stale[name].double() - right.values).abs() > right.bound).view(12, -1).any(1)
        if argument.dims[0] == rows:
            moved = [row for row in range(12) if not torch.equal(*(_bytes(each[argument.name][row])
                                                                   for each in (base, inputs)))]
            assert len(moved) == 6
            if spec.tolerances[dtype].exact:  # only the largest are asked for: a spike below all others is none
                moved = [row for row in moved if inputs[argument.name][row].max() > base[argument.name][row].max()]
            if argument.name == "logits":  # those of an ignored row do not count
                moved = [row for row in moved if base["target"][row] != attributes["ignore_index"]]
            assert moved and fooled[moved].sum() >= len(moved) - 1, argument.name
            assert not fooled[still].any()
            assert len(still) == (6 if base[argument.name].is_floating_point() else 0)
        else:
            assert fooled.all()
        assert inputs[argument.name].dtype is dtype_of(argument.dtype or dtype)


def _bytes(values: torch.Tensor) -> torch.Tensor:
    return values.contiguous().view(-1).view(torch.uint8)


def test_a_row_that_hears_of_its_neighbour_is_refused_however_softly() -> None:
    leaking = BASELINE.replace(
        "scale = np.float32(1.0)", "near = abs(x[(row + 1) % rows].sum())\n"
        "        total *= np.float32(1.0 + 1.2e-7 * (int(near) % 4 if near < 1e9 else 0))\n"
        "        scale = np.float32(1.0)")
    assert leaking != BASELINE
    outcome, reason = judged(make_run(RMS_NORM, Backend.NUMBA, leaking, PlainOpener(), small=True))
    assert (outcome, reason.code) == (Outcome.INCORRECT_NUMERIC, "row_leak"), reason
    assert reason.index is not None


def test_a_race_that_shows_once_in_twenty_calls_is_refused() -> None:
    rare = BASELINE.replace("PARAMS =", "_CALLS = {}\nPARAMS =") + (
        "    key = float(x[0, 0])\n"
        "    _CALLS[key] = _CALLS.get(key, 0) + 1\n"
        "    if _CALLS[key] == 17:\n"
        "        out[0, 0] = np.nextafter(out[0, 0], np.float32(9))\n"
    )
    outcome, reason = judged(make_run(RMS_NORM, Backend.NUMBA, rare, PlainOpener(), small=True))
    assert (outcome, reason.code) == (Outcome.INCORRECT_NONDETERMINISTIC, "nondeterministic"), reason


def test_a_kernel_wrong_for_one_residue_class_is_refused() -> None:
    """Right in every case of the operator, none of which has this remainder."""
    narrow = BASELINE.replace("np.float32(eps), block)", "np.float32(eps), block)\n"
                              "    out *= np.float32(1.0001 if x.shape[1] % 96 == 41 else 1.0)")
    assert narrow != BASELINE
    outcome, reason = judged(make_run(RMS_NORM, Backend.NUMBA, narrow, PlainOpener(), small=True))
    assert outcome is Outcome.INCORRECT_NUMERIC
    assert reason.case.startswith(("probe: special values", "probe: drawn sizes"))


def test_a_broken_relation_says_where_and_by_how_much() -> None:
    """Positive values two roundings too large: inside every bound, but minus x no longer gives minus the result."""
    lopsided = BASELINE.replace(
        "* scale * weight[col]", "* scale * weight[col] * np.float32(1.0000001 if x[row, col] > 0 else 1.0)")
    assert lopsided != BASELINE
    outcome, reason = judged(make_run(RMS_NORM, Backend.NUMBA, lopsided, PlainOpener(), small=True))
    assert (outcome, reason.code) == (Outcome.INCORRECT_NUMERIC, "relation_broken"), reason
    assert reason.case == "probe: minus x gives minus the result"
    assert reason.index is not None and len(reason.index) == 2
    assert isinstance(reason.got, float) and reason.got == pytest.approx(reason.expected, rel=1e-6)
    assert reason.got != reason.expected and reason.bound == 0.0
    assert "must be the same bits" in reason.text


def test_an_exact_problem_says_where_it_went_wrong() -> None:
    how = Numerics(sums="tf32", serial=False)
    run = on_device(RMS_NORM, TorchOpener(RMS_NORM, lambda inputs, at: run_kernel("rms_norm", inputs, at, how)))
    run.stage = Stage.PROBES
    with pytest.raises(Refused) as refused:
        probes(run)
    [reason] = refused.value.reasons
    assert (reason.code, reason.case) == ("exact_wrong", "probe: integers with an exact mean square")
    assert "is exact in any order of evaluation" in reason.text and "elements" in reason.text
    assert reason.index is not None and reason.got != reason.expected
