"""New contents for every sample: the judge's arithmetic, and that nothing comes twice."""

from __future__ import annotations

import os
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backends.triton.stages import planned_shapes
from harness.domain.errors import InfrastructureError
from harness.domain.vocabulary import Outcome
from harness.evaluation.buffers import RenewableInput
from harness.evaluation.judge.bases import close_bases
from harness.evaluation.judge.inputs import all_attributes, make_inputs
from harness.evaluation.timing.device import contents
from harness.evaluation.timing.device.contents import (
    SHORT_TABLE,
    TABLE,
    Factors,
    Starts,
    Stretch,
    renewed,
    renewed_within,
    same_bits,
)
from harness.evaluation.timing.device.shape import prepare
from harness.operators.registry import get
from tests.harness.device.runs import device_run
from tests.harness.judge.evaluations import judged


@pytest.fixture(scope="module")
def factors():
    made = Factors(5, "test")
    yield made
    made.close()


def test_factors_are_fresh_per_seed_and_between_three_quarters_and_one(factors):
    assert float(factors.values.min()) >= 0.75 and float(factors.values.max()) <= 1.0
    again, other = Factors(5, "test"), Factors(6, "test")
    assert torch.equal(again.values, factors.values) and not torch.equal(other.values, factors.values)
    again.close(), other.close()


@pytest.mark.parametrize("operator", ["softmax", "decode_attention"])
def test_contents_are_the_first_ones_times_factors_as_the_judges_own_memory_has_them(factors, operator):
    spec = get(operator)
    dims = {"rows": 5, "cols": 37} if operator == "softmax" else {
        "batch": 2, "q_heads": 4, "kv_heads": 2, "dim": 16, "max_seq": 33}
    attributes = all_attributes(spec, {})
    inputs = make_inputs(spec, dims, "normal", attributes, "bfloat16", 3, "x")
    names = [a.name for a in spec.inputs if a.dtype is None]
    starts = Starts([inputs[name].numel() for name in names], random.Random(1))
    for name, stretch in zip(names, starts.stretches(starts.draw()), strict=True):
        flat = inputs[name].flatten()
        block = RenewableInput(name, inputs[name])
        block.renew(stretch.factors(factors.values, 0, flat.numel()))
        mine = renewed(flat, stretch, factors.values, 0, flat.numel())
        assert same_bits(mine, block.values().flatten()), name
        os.close(block.lent.fd)


@given(shape=st.lists(st.integers(1, 5), min_size=2, max_size=4), start=st.integers(0, 500), piece=st.integers(1, 40),
       draw=st.data())
@settings(max_examples=60, deadline=None)
def test_parts_of_a_sample_made_in_pieces_are_those_of_the_whole_product(shape, start, piece, draw):
    """What decides is the plain way: all of the array times its factors, at once, and then the part."""
    table = torch.rand(97, generator=torch.Generator().manual_seed(1)) * 0.25 + 0.75
    base = torch.randn(shape, generator=torch.Generator().manual_seed(2)).to(torch.bfloat16)
    stretch = Stretch(start % 97, 97, base.numel())
    whole = (base.flatten().float() * stretch.factors(table, 0, base.numel())).to(base.dtype)
    axis = draw.draw(st.integers(1, len(shape) - 1))
    low, first = (draw.draw(st.integers(0, shape[place] - 1)) for place in (axis, 0))
    part, rows = (range(begin, draw.draw(st.integers(begin + 1, shape[place])))
                  for begin, place in ((low, axis), (first, 0)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contents, "PIECE", piece)
        assert torch.equal(renewed(base.flatten(), stretch, table, first, base.numel()), whole[first:])
        found = renewed_within(base, stretch, table, rows, axis, part)
    wanted = whole.view(shape)[rows.start : rows.stop].narrow(axis, part.start, len(part))
    assert found.is_contiguous() and torch.equal(found, wanted)


@given(st.integers(1, 90), st.integers(0, 200), st.integers(0, 300), st.integers(0, 300))
def test_factors_are_repeated_along_an_array(count, start, first, wanted):
    table = torch.arange(100.0)
    found = Stretch(start % count, count, 1000).factors(table, first, first + wanted)
    assert found.tolist() == [float((start % count + first + step) % count) for step in range(wanted)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([1, 37, TABLE - 70_000, TABLE - 3, TABLE - 1, TABLE, TABLE + 5, 134_217_728]),
                min_size=1, max_size=3), st.integers(0, 2**32))
def test_no_array_gets_the_same_stretch_twice(sizes, seed):
    starts = Starts(sizes, random.Random(seed))
    seen = [[stretch.start for stretch in starts.stretches(starts.draw())] for _ in range(200)]
    for places, size in zip(zip(*seen, strict=True), sizes, strict=True):
        assert len(set(places)) == len(places)
        assert all(0 <= place < TABLE for place in places)
        assert starts.count in (TABLE, SHORT_TABLE)
        assert size >= starts.count or max(places) + size <= starts.count


def test_a_session_that_asks_for_too_much_is_told_so():
    starts = Starts([TABLE - 70_000], random.Random(0))
    drawn = [starts.draw() for _ in range(starts.most)]
    assert len(set(drawn)) == starts.most > 30_000
    with pytest.raises(InfrastructureError, match="new contents"):
        starts.draw()


def test_bits_are_compared_not_values():
    zeros = torch.tensor([0.0, torch.nan]), torch.tensor([-0.0, torch.nan])
    assert not same_bits(*zeros)
    other_nan = torch.tensor([0x7FC1], dtype=torch.int16).view(torch.bfloat16)
    assert same_bits(other_nan, torch.tensor([torch.nan], dtype=torch.bfloat16))


@pytest.mark.parametrize("operator", ["rms_norm", "softmax", "decode_attention"])
def test_correctness_and_clock_share_first_contents_and_no_sample_holds_them(operator, factors, monkeypatch):
    spec = get(operator)
    run, _, _ = device_run(monkeypatch, spec)
    assert judged(run) == (Outcome.PASSED, None)
    (point,) = planned_shapes(run)
    base = run.bases[point.label]
    shapes = prepare(spec, (point,), dtype="bfloat16", regimes=run.workload.regimes, seed=1, source=random.Random(1),
                     stage="clock", bases=run.bases)
    shape = shapes[point.label]
    assert shape.inputs is base.inputs and shape.lending is base.lending
    stretches = shape.starts.stretches(shape.starts.draw())
    for item, stretch in zip(shape.renewed, stretches, strict=True):
        flat = base.inputs[item.name].flatten()
        flat = flat[flat.isfinite() & (flat != 0)]
        assert (renewed(flat, stretch, factors.values, 0, len(flat)) != flat).float().mean() > 0.9
    close_bases(run)
    assert run.bases is None
