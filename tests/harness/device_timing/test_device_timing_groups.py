"""A long cache is judged in some of its heads: with all the query heads that read them, and no others."""

from __future__ import annotations

import math
import random

import pytest
import torch

from harness.backends.triton.launcher.requests import Apart
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.judge import rows
from harness.evaluation.judge.correctness import LAYOUT_BYTES, fewer_rows
from harness.evaluation.judge.lending import Collected
from harness.evaluation.run import Refused
from harness.evaluation.timing.device import closeness
from harness.evaluation.timing.device import shape as shapes
from harness.evaluation.timing.device.apart import decide, differences
from harness.evaluation.timing.device.contents import Factors, Starts
from harness.evaluation.timing.device.problem import problem_of, stretches_of
from harness.evaluation.timing.device.shape import Shape
from harness.evaluation.timing.device.verify import left_by, verify
from harness.operators.base import ShapePoint
from harness.operators.implementation import load_implementation
from harness.operators.registry import get
from tests.harness.device_timing.test_device_timing_inner import Result

SPEC = get("decode_attention")
GROUP, HEADS, WIDTH, LENGTH = 2, 5, 16, 11
DIMS = {"batch": 2, "q_heads": GROUP * HEADS, "kv_heads": HEADS, "dim": WIDTH, "max_seq": LENGTH}
HEAD = 2 * LENGTH * WIDTH


@pytest.fixture(scope="module")
def shape():
    made = Shape(SPEC, ShapePoint("long", DIMS, 1.0, {"scale": 0.25}), dtype="bfloat16", regimes=("normal",), seed=1,
                 source=random.Random(1), stage="test")
    yield made
    made.close()


@pytest.fixture(scope="module")
def factors():
    made = Factors(5, "groups")
    yield made
    made.close()


@pytest.fixture
def scarce(monkeypatch):
    """Budgets so small that two heads are nearly too much."""
    monkeypatch.setattr(rows, "BUDGET", 3 * HEAD)
    monkeypatch.setattr(shapes, "MOST_ROW_ELEMENTS", 2 * HEAD + 100)
    monkeypatch.setattr(closeness, "BUDGET", 3 * HEAD)


def honest(shape, inputs):
    return load_implementation(SPEC).honest(inputs, shape.attributes)


def collected(shape, place=None):
    out = honest(shape, shape.inputs)["out"].clone()
    if place is not None:
        out[place] = 2 * out[place] + 1
    return Collected({"out": out}, {"out": torch.zeros(out.shape, dtype=torch.bool)})


def test_a_head_with_its_queries_is_a_problem_of_its_own(shape, factors):
    whole = honest(shape, problem_of(shape, range(2), stretches_of(shape, 77), factors.values)[1])["out"]
    dims, part = problem_of(shape, range(1, 2), stretches_of(shape, 77), factors.values, range(3, 5))
    assert dims == {**DIMS, "batch": 1, "kv_heads": 2, "q_heads": 2 * GROUP}
    assert torch.equal(honest(shape, part)["out"], whole[1:2, 3 * GROUP : 5 * GROUP])


def test_faults_are_found_in_the_heads_looked_at_and_named_in_the_whole_output(shape, scarce):
    seen = set()
    for seed in range(40):
        draw = torch.Generator().manual_seed(seed)
        place = (1, (HEADS - 1) * GROUP + 1, 3)  # the last head is always looked at
        found = rows.check_rows(SPEC, DIMS, shape.inputs, shape.attributes, "bfloat16", collected(shape, place), draw,
                                Stage.CORRECTNESS, "case")
        assert [reason.index for _, reason in found.faults] == [place]
        middle = rows.check_rows(SPEC, DIMS, shape.inputs, shape.attributes, "bfloat16",
                                 collected(shape, (0, 2 * GROUP, 0)), draw, Stage.CORRECTNESS, "case")
        seen.add(bool(middle.faults))
    assert seen == {True, False}  # head by head, not whole rows


def test_a_nan_in_any_head_is_looked_at(shape, scarce):
    left = collected(shape)
    left.values["out"][1, 2 * GROUP + 1, 5] = math.nan
    found = rows.check_rows(SPEC, DIMS, shape.inputs, shape.attributes, "bfloat16", left,
                            torch.Generator().manual_seed(1), Stage.CORRECTNESS, "case")
    assert [(outcome, reason.index) for outcome, reason in found.faults] == [
        (Outcome.INCORRECT_NAN, (1, 2 * GROUP + 1, 5))]


@pytest.mark.parametrize("wrong", [False, True])
def test_kept_heads_of_timed_samples_are_verified(shape, factors, scarce, wrong):
    shape.starts = Starts(shape.starts.sizes, random.Random(3))
    request = shape.round(factors, {"candidate": 0, "other": 1}, 4, l2_bytes=1 << 20, memory_bytes=1 << 30)
    kept = []
    for sweep in request.sweeps:
        mine = []
        for keep in sweep.keeps:
            stretches = stretches_of(shape, sweep.starts[sweep.slots.index(keep.slot)])
            _, inputs = problem_of(shape, range(2), stretches, factors.values)
            out = honest(shape, inputs)["out"] * (3 if wrong else 1)
            data = inputs.get(keep.output, out).contiguous().view(torch.int16).numpy().tobytes()
            mine.append(data[keep.offset : keep.offset + keep.count])
            if keep.output == "out":
                assert keep.count == 2 * GROUP * WIDTH * 2  # two heads of one row
        kept.append(tuple(mine))
    left = [(one, 0.5) for one in left_by(shape, request, Result(kept))]
    assert left
    if not wrong:
        verify(left, factors.values, Stage.RECHECK)
        return
    with pytest.raises(Refused) as caught:
        verify(left, factors.values, Stage.RECHECK)
    assert "q_heads" in caught.value.reasons[1].text


@pytest.mark.parametrize("place", [(0, 0, 0), (1, 7, 5), (1, 9, 15)])
def test_a_difference_is_judged_in_its_head_alone(shape, factors, scarce, place):
    closeness.settle([shape], None)
    request = shape.round(factors, {"candidate": 0, "baseline": 1}, 2, l2_bytes=1 << 20, memory_bytes=1 << 30,
                          trusted="baseline")
    sweep = request.sweeps[0]
    stretches = stretches_of(shape, sweep.starts[0])
    right = float(honest(shape, problem_of(shape, range(2), stretches, factors.values)[1])["out"][place])
    index = (place[0] * GROUP * HEADS + place[1]) * WIDTH + place[2]
    apart = Apart(0, "out", sweep.slots[0], 1, index, 2 * right + 1, right)
    found = differences(shape, request, Result(apart=[apart]))
    with pytest.raises(Refused) as caught:
        decide(found, factors.values, Stage.RECHECK, "baseline", own=False)
    assert caught.value.reasons[0].index == place


def test_a_cache_too_long_is_cut_to_fewer_heads():
    (long,) = [point for point in SPEC.workloads["llm"].shapes["triton"] if point.dims["max_seq"] == 131072]
    cut = fewer_rows(SPEC, long.dims, 2)
    assert cut["kv_heads"] == 1 and cut["q_heads"] == long.dims["q_heads"] // long.dims["kv_heads"]
    assert cut["max_seq"] == long.dims["max_seq"] and SPEC.bytes_per_call(cut, 2) > LAYOUT_BYTES
