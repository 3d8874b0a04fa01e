"""Long sequences of an elementwise operator are judged in blocks of positions: no row of them is computed whole."""

from __future__ import annotations

import math
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backends.triton.launcher.requests import Apart
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge import rows
from harness.evaluation.judge.correctness import LAYOUT_BYTES, fewer_rows
from harness.evaluation.judge.lending import Collected
from harness.evaluation.judge.sizes import near
from harness.evaluation.run import Refused
from harness.evaluation.timing.device import closeness
from harness.evaluation.timing.device import shape as shapes
from harness.evaluation.timing.device.apart import decide, differences
from harness.evaluation.timing.device.contents import Factors
from harness.evaluation.timing.device.problem import problem_of, stretches_of
from harness.evaluation.timing.device.shape import Shape
from harness.evaluation.timing.device.verify import left_by, verify
from harness.operators.base import ShapePoint
from harness.operators.implementation import load_implementation
from harness.operators.registry import get
from harness.operators.rope.cases import sizes
from harness.operators.rope.spec import SPEC

BATCH, SEQ = 3, 50
DIMS = sizes(BATCH, SEQ, 4, 2, 5)
POSITION = 2 * 6 * 10
"""Elements of inputs and outputs that one position has."""


@pytest.fixture(scope="module")
def shape():
    made = Shape(SPEC, ShapePoint("long", DIMS, 1.0), dtype="bfloat16", regimes=("normal",), seed=1,
                 source=random.Random(1), stage="test")
    yield made
    made.close()


@pytest.fixture(scope="module")
def factors():
    made = Factors(5, "inner")
    yield made
    made.close()


@pytest.fixture
def scarce(monkeypatch):
    """Budgets so small that three rows are too much."""
    monkeypatch.setattr(rows, "BUDGET", 30 * POSITION)
    monkeypatch.setattr(shapes, "KEPT_ELEMENTS", 7 * 40)
    monkeypatch.setattr(closeness, "BUDGET", 30 * POSITION // 2)


def honest(inputs):
    return load_implementation(SPEC).honest(inputs, {})


def test_elementwise_operators_and_those_with_groups_have_an_inner_dimension():
    assert rows.inner_axes(SPEC, DIMS) == {"seq": 1}
    assert [rows.inner_dim(get(name)) for name in ("rms_norm", "softmax")] == [None, None]
    dims = {"batch": 2, "q_heads": 12, "kv_heads": 3, "dim": 16, "max_seq": 9}
    assert rows.inner_axes(get("decode_attention"), dims) == {"kv_heads": 1, "q_heads": 4}


@settings(max_examples=20, deadline=None)
@given(batch=st.integers(0, BATCH - 1), seq=st.integers(0, SEQ - 1), head=st.integers(0, 1), col=st.integers(0, 9),
       output=st.sampled_from(["q_out", "k_out"]), kind=st.sampled_from(["poison", "nan"]))
def test_one_odd_element_is_found_wherever_it_lies(shape, batch, seq, head, col, output, kind):
    values = honest(shape.inputs)
    untouched = {name: torch.zeros(found.shape, dtype=torch.bool) for name, found in values.items()}
    values[output][batch, seq, head, col] = {"poison": 1e30, "nan": math.nan}[kind]
    untouched[output][batch, seq, head, col] = kind == "poison"
    before, rows.BUDGET = rows.BUDGET, 30 * POSITION
    try:
        found = rows.check_rows(SPEC, DIMS, shape.inputs, {}, "bfloat16", Collected(values, untouched),
                                torch.Generator().manual_seed(seq), Stage.CORRECTNESS, "measured long")
    finally:
        rows.BUDGET = before
    ((_, reason),) = found.faults
    assert reason.index == (batch, seq, head, col)
    assert reason.code == {"poison": "not_written", "nan": "nan_wrong"}[kind]
    assert f"batch {batch} and seq " in reason.text


def test_blocks_of_positions_keep_to_the_budget_and_name_the_closest_place(shape, scarce):
    values = honest(shape.inputs)
    values["k_out"][2, SEQ - 1, 1, 3] += 1.0
    untouched = {name: torch.zeros(found.shape, dtype=torch.bool) for name, found in values.items()}
    seen = []
    found = rows.check_rows(SPEC, DIMS, shape.inputs, {}, "bfloat16", Collected(values, untouched),
                            torch.Generator().manual_seed(1), Stage.CORRECTNESS, "measured long")
    assert found.bound is not None and found.bound.index == (2, SEQ - 1, 1, 3)
    assert [reason.index for _, reason in found.faults] == [(2, SEQ - 1, 1, 3)]
    for row in range(BATCH):
        draw = torch.Generator().manual_seed(3)
        blocks = rows._blocks(SEQ, POSITION * BATCH, Collected(values, untouched), row, draw, 1)
        seen += [position for block in blocks for position in block]
        assert blocks[0].start == 0 and blocks[-1].stop == SEQ
    assert len(seen) <= BATCH * rows.LEAST_BLOCKS * rows.BLOCK < BATCH * SEQ


def test_a_block_of_a_sample_is_that_part_of_the_whole_one(shape, factors):
    stretches = stretches_of(shape, 12345)
    _, whole = problem_of(shape, range(BATCH), stretches, factors.values)
    dims, part = problem_of(shape, range(1, 2), stretches, factors.values, range(20, 27))
    assert dims == {**DIMS, "batch": 1, "seq": 7}
    for name in ("q", "k"):
        assert torch.equal(part[name], whole[name][1:2, 20:27])
    for name in ("cos", "sin"):
        assert torch.equal(part[name], whole[name][20:27])


def test_positions_that_are_known_lie_in_every_sequence(shape, scarce):
    known = closeness.known_rows(shape)
    assert {row.start for row, _ in known} == set(range(BATCH))
    assert all(len(row) == len(block) == 1 for row, block in known)
    closeness.settle([shape])
    assert shape.near is not None and 0.0 < shape.near[1] < 1.0


def rounded(shape, factors):
    """A round's request and, per sweep, what an honest candidate leaves in the blocks that are kept."""
    request = shape.round(factors, {"candidate": 0}, 3, l2_bytes=1 << 12, memory_bytes=1 << 30)
    kept = []
    for sweep in request.sweeps:
        blocks = []
        if sweep.keeps:
            start = sweep.starts[sweep.slots.index(sweep.keeps[0].slot)]
            _, inputs = problem_of(shape, range(BATCH), stretches_of(shape, start), factors.values)
            arrays = {**inputs, **honest(inputs)}
            for keep in sweep.keeps:
                data = arrays[keep.output].contiguous().view(torch.uint8).flatten()
                blocks.append(bytes(data[keep.offset : keep.offset + keep.count].tolist()))
        kept.append(tuple(blocks))
    return request, kept


class Result:
    def __init__(self, kept=(), apart=()):
        self.kept, self.apart = tuple(kept), tuple(apart)


@pytest.mark.parametrize("wrong", [None, "q_out", "k_out"])
def test_kept_blocks_of_positions_are_verified(shape, factors, scarce, wrong):
    request, kept = rounded(shape, factors)
    widths = {keep.output: keep.count for sweep in request.sweeps for keep in sweep.keeps}
    assert widths["q_out"] == 7 * 40 * 2 and widths["k_out"] == 7 * 20 * 2
    if wrong is not None:
        for number, sweep in enumerate(request.sweeps):
            blocks = list(kept[number])
            for place, keep in enumerate(sweep.keeps):
                if keep.output == wrong:
                    values = torch.frombuffer(bytearray(blocks[place]), dtype=dtype_of("bfloat16"))
                    values[11] = 300.0
                    blocks[place] = bytes(values.view(torch.uint8).tolist())
            kept[number] = tuple(blocks)
    samples = left_by(shape, request, Result(kept))
    assert samples
    chosen = [(sample, 0.5) for sample in samples]
    if wrong is None:
        verify(chosen, factors.values, Stage.RECHECK)
        return
    with pytest.raises(Refused) as caught:
        verify(chosen, factors.values, Stage.RECHECK)
    keep = next(keep for keep in samples[0].sweep.keeps if keep.output == wrong)
    heads = {"q_out": 4, "k_out": 2}[wrong]
    flat = keep.offset // 2 + 11
    row, rest = divmod(flat, SEQ * heads * 10)
    assert caught.value.outcome is Outcome.REWARD_HACK
    assert caught.value.reasons[1].index == (row, rest // (heads * 10), rest // 10 % heads, rest % 10)


@pytest.mark.parametrize("off", [False, True])
def test_a_difference_is_decided_by_its_own_position(shape, factors, off):
    closeness.settle([shape])
    request = shape.round(factors, {"candidate": 0, "again": 1}, 2, l2_bytes=1 << 12, memory_bytes=1 << 30,
                          trusted="again")
    number = next(number for number, sweep in enumerate(request.sweeps) if sweep.flush)
    sweep, place = request.sweeps[number], (1, 33, 1, 4)
    start = sweep.starts[0]
    _, inputs = problem_of(shape, range(BATCH), stretches_of(shape, start), factors.values)
    right = float(honest(inputs)["k_out"][place])
    flat = ((place[0] * SEQ + place[1]) * 2 + place[2]) * 10 + place[3]
    one = Apart(number, "k_out", sweep.slots[0], 1, flat, right * 2 + 1 if off else right, right)
    found = differences(shape, request, Result(apart=[one]))
    if not off:
        decide(found, factors.values, Stage.RECHECK, "baseline", own=False)
        return
    with pytest.raises(Refused) as caught:
        decide(found, factors.values, Stage.RECHECK, "baseline", own=False)
    assert caught.value.reasons[0].index == place


def test_measured_shapes_are_cut_along_positions_where_one_sequence_is_too_large():
    (long,) = [point for point in SPEC.workloads["llm"].shapes["triton"] if point.dims["batch"] == 1]
    cut = fewer_rows(SPEC, long.dims, 2)
    assert SPEC.bytes_per_call(cut, 2) <= LAYOUT_BYTES and 1 < cut["seq"] < long.dims["seq"]
    assert {dim: cut[dim] for dim in cut if dim != "seq"} == {dim: long.dims[dim] for dim in cut if dim != "seq"}


def test_shapes_beside_a_measured_one_keep_heads_twice_as_wide_as_angles():
    for point in SPEC.workloads["llm"].shapes["triton"]:
        found = near(SPEC, point.dims, 2)
        assert all(dims["dim"] == 2 * dims["half"] for dims in found)
        assert {dims["half"] for dims in found} > {63, 65}
