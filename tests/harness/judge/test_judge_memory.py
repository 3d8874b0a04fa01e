"""Lent memory: seals, guard bands, poison, layouts, rings."""

from __future__ import annotations

import mmap
import os
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.vocabulary import Backend, Outcome, Stage
from harness.evaluation.buffers import BAND, ROW_GAP, InputFile, OutputBlock, RenewableInput, lend_input
from harness.evaluation.judge.inputs import make_inputs
from harness.evaluation.judge.lending import Lending
from harness.evaluation.judge.ring import Renewal, Samples, fresh_inputs, left_in
from harness.evaluation.judge.seeds import derive, draw_seed
from harness.operators import registry
from harness.operators.implementation import load_implementation
from tests.harness.judge.evaluations import judged, make_run
from tests.harness.judge.plain_worker import PlainOpener


def whole(fd: int, nbytes: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.frombuffer(bytearray(os.pread(fd, nbytes, 0)), dtype=dtype)


def write(block: OutputBlock, start: int, values: torch.Tensor) -> None:
    item = values.element_size()
    os.pwrite(block.lent.fd, values.contiguous().view(torch.uint8).numpy().tobytes(), block.lent.offset + start * item)


@pytest.mark.parametrize("layout", ["dense", "strided", "offset"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_an_input_is_lent_as_declared_with_nan_around_it(layout: str, dtype: torch.dtype) -> None:
    values = torch.randn(3, 5).to(dtype)
    lent = lend_input("x", values, layout)  # type: ignore[arg-type]
    memory = whole(lent.fd, lent.nbytes, dtype)
    start = lent.offset // values.element_size()
    assert torch.equal(memory.as_strided(lent.shape, lent.strides, start), values)
    inside = torch.zeros(memory.shape, dtype=torch.bool)
    inside.as_strided(lent.shape, lent.strides, start)[:] = True
    assert torch.isnan(memory[~inside]).all()
    assert lent.strides == ((5 + ROW_GAP, 1) if layout == "strided" else (5, 1))
    assert (lent.offset == BAND) == (layout != "offset")
    os.close(lent.fd)


def test_integers_are_guarded_by_their_largest_value() -> None:
    lent = lend_input("seq_lens", torch.tensor([1, 2], dtype=torch.int32))
    memory = whole(lent.fd, lent.nbytes, torch.int32)
    assert (memory == 2**31 - 1).sum() == memory.numel() - 2
    os.close(lent.fd)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.int64])
def test_an_input_written_in_pieces_is_the_one_that_is_copied(dtype: torch.dtype) -> None:
    values = (torch.arange(35.0) - 9).view(5, 7).to(dtype)
    file = InputFile("x", (5, 7), dtype)
    file.write(values[3:], 21)
    file.write(values[2:3, ::7], 14)
    file.write(values[:3])
    lent, mine = file.seal()
    copied = lend_input("x", values)
    assert replace(lent, fd=0) == replace(copied, fd=0)
    assert os.pread(lent.fd, lent.nbytes, 0) == os.pread(copied.fd, copied.nbytes, 0)
    assert torch.equal(mine, values)
    mine[:] = 1  # the judge's own from now on
    assert os.pread(lent.fd, lent.nbytes, 0) == os.pread(copied.fd, copied.nbytes, 0)
    os.close(copied.fd)
    os.close(lent.fd)


def test_pieces_that_do_not_fit_into_an_input_are_refused() -> None:
    file = InputFile("x", (2, 3), torch.bfloat16)
    for values, first in ((torch.zeros(6), 0), (torch.zeros(6, dtype=torch.bfloat16), 1),
                          (torch.zeros(1, dtype=torch.bfloat16), -1)):
        with pytest.raises(ValueError, match="do not fit into input 'x'"):
            file.write(values, first)
    file.close()
    file.close()


@pytest.mark.parametrize("sealed", [False, True])
def test_nobody_can_write_to_a_lent_input_or_resize_it(sealed: bool) -> None:
    lent = InputFile("x", (4,), torch.float32).seal()[0] if sealed else lend_input("x", torch.ones(4))
    with pytest.raises(PermissionError):
        mmap.mmap(lent.fd, lent.nbytes)
    with pytest.raises(PermissionError):
        os.pwrite(lent.fd, b"x", 0)
    with pytest.raises(PermissionError):
        os.ftruncate(lent.fd, 10)
    os.close(lent.fd)


def test_an_output_file_cannot_be_resized() -> None:
    block = OutputBlock("out", (4,), torch.float32)
    with pytest.raises(PermissionError):
        os.ftruncate(block.lent.fd, 0)
    block.close()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int64])
def test_poison_is_finite_new_each_time_and_known(dtype: torch.dtype) -> None:
    block = OutputBlock("out", (2, 3), dtype)
    seen = set()
    for _ in range(6):
        block.poison()
        values, untouched = block.read()
        assert untouched.all()
        assert torch.isfinite(values.double()).all()
        assert (values.double().abs() > 1e3).all()
        seen.add(values[0, 0].item())
    assert len(seen) > 1
    write(block, 4, torch.ones(1, dtype=dtype))
    values, untouched = block.read()
    assert untouched.tolist() == [[True, True, True], [True, False, True]]
    block.close()


@settings(max_examples=30)
@given(st.integers(1, 5000), st.booleans())
def test_an_overrun_is_seen_and_measured(distance: int, after: bool) -> None:
    block = OutputBlock("out", (8,), torch.float32)
    block.poison()
    assert block.overruns() == []
    before = whole(block.lent.fd, block.lent.nbytes, torch.int32)
    at = 7 + distance if after else -distance
    old = before[block.lent.offset // 4 + at]
    write(block, at, (old ^ 1).reshape(1))
    assert [(found.side, found.elements) for found in block.overruns()] == [("after" if after else "before", distance)]
    block.poison()
    assert block.overruns() == []
    block.close()


def test_a_broken_guard_is_out_of_bounds_in_words() -> None:
    spec = registry.get("softmax")
    lending = Lending(spec, {"x": torch.ones(2, 4)}, {}, "float32")
    out = lending.lent[1]
    os.pwrite(out.fd, b"\x00" * 12, out.offset + 8 * 4)
    [(outcome, reason)] = lending.broken_guards(Stage.SMOKE, "case")
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert "up to 3 element(s) past the end of an array of shape (2, 4)" in reason.text
    lending.close()
    lending.close()


def test_rings_repeat_for_a_seed_and_keep_what_does_not_change_per_call() -> None:
    spec = registry.get("rms_norm")
    point = spec.workloads["llm"].shapes[Backend.NUMBA][2]
    rings = [fresh_inputs(spec, point, "float32", ("normal", "offset"), seed, 3, "round", 1) for seed in (5, 5, 6)]
    first, again, other = rings
    for slot in range(3):
        assert torch.equal(first[slot].inputs["x"], again[slot].inputs["x"])
        assert torch.equal(first[slot].inputs["weight"], first[0].inputs["weight"])
        assert not torch.equal(first[slot].inputs["x"], other[slot].inputs["x"])
    assert not torch.equal(first[0].inputs["x"], first[1].inputs["x"])
    assert first[0].attributes == {"eps": 1e-6}
    for ring in rings:
        for lending in ring:
            lending.close()


def test_renewed_contents_differ_everywhere_and_the_judge_knows_them() -> None:
    spec = registry.get("decode_attention")
    point = spec.workloads["llm"].shapes[Backend.NUMBA][2]
    rings = [fresh_inputs(spec, point, "float32", ("normal",), 1, 2) for _ in range(2)]
    renewals = [Renewal(ring, 1, "label") for ring in rings]
    first = {name: value.clone() for name, value in rings[0][0].inputs.items()}
    for _ in range(2):
        before = rings[0][0].inputs
        for ring, renewal in zip(rings, renewals, strict=True):
            renewal.renew(ring)
        after, again = rings[0][0].inputs, rings[1][0].inputs
        for item in rings[0][0].lent[:3]:
            name = item.name
            lent = torch.frombuffer(bytearray(os.pread(item.fd, first[name].nbytes, item.offset)), dtype=torch.float32)
            assert torch.equal(lent.view(torch.int32), after[name].flatten().view(torch.int32))
            real = ~first[name].isnan()  # beyond its length a cache holds anything
            assert torch.equal(after[name].isnan(), again[name].isnan())
            assert torch.equal(after[name].nan_to_num(), again[name].nan_to_num())  # a seed gives the same contents
            assert float((after[name] != before[name])[real].float().mean()) > 0.999
            turns = [turn for turn in range(first[name].shape[-1])
                     if _is_scaled(after[name], first[name].roll(turn, -1))]
            assert len(turns) == 1  # columns are turned, rows stay: lengths say how much of each is in use
        assert torch.equal(after["seq_lens"], first["seq_lens"])
    for ring in rings:
        for lending in ring:
            lending.close()


def _is_scaled(after: torch.Tensor, before: torch.Tensor) -> bool:
    """Whether ``after`` is ``before`` times factors from 0.75 to 1."""
    share = (after / before).nan_to_num(1.0)
    return bool((share >= 0.749).all()) and bool((share <= 1.001).all())


def test_rows_and_columns_of_a_row_wise_operator_are_turned_and_scaled() -> None:
    spec = registry.get("topk")
    dims = {"rows": 5, "cols": 40, "k": 3}
    inputs = make_inputs(spec, dims, "normal", {"k": 3}, "float32", 7, "turned")
    seen = set()
    with Lending(spec, inputs, {"k": 3.0}, "float32", renewable=True) as lending:
        first = lending.inputs["x"].clone()
        factors = torch.rand(1000) / 4 + 0.75
        for start in (3, 4, 500):
            lending.renew(factors, start)
            after = lending.inputs["x"]
            found = [(row, col) for row in range(5) for col in range(40)
                     if _is_scaled(after, first.roll((row, col), (0, 1)))]
            assert len(found) == 1
            seen |= set(found)
    assert len({row for row, _ in seen}) > 1 and len({col for _, col in seen}) == 3


def test_a_slot_never_gets_the_same_contents_twice() -> None:
    """By chance alone, 2,000 of 65,536 would repeat about thirty times."""

    class Slot:
        def __init__(self) -> None:
            self.starts: list[int] = []
            self.lent = [SimpleNamespace(shape=(4, 8))]

        def renew(self, factors: torch.Tensor, start: int) -> None:
            self.starts.append(start % (len(factors) - 32 + 1))

    slots = [Slot(), Slot()]
    renewal = Renewal(slots, 1)  # type: ignore[arg-type]
    for _ in range(2000):
        renewal.renew(slots)  # type: ignore[arg-type]
    assert all(len(set(slot.starts)) == len(slot.starts) for slot in slots)


def test_nobody_but_the_judge_can_write_a_renewable_input() -> None:
    block = RenewableInput("x", torch.ones(8))
    with pytest.raises(PermissionError):
        os.pwrite(block.lent.fd, b"\x00" * 4, block.lent.offset)
    with pytest.raises(PermissionError):
        mmap.mmap(block.lent.fd, block.lent.nbytes)
    block.renew(torch.full((8,), 0.5))
    assert torch.equal(block.values(), torch.full((8,), 0.5))
    os.close(block.lent.fd)


@pytest.mark.parametrize(("change", "wrong"), [
    (None, False), (1.0 + 1e-6, False), (1.01, True), (0.0, True), (float("nan"), True),
])
def test_sampled_places_of_every_timed_call_are_held_against_the_other_side(change: float | None, wrong: bool) -> None:
    spec = registry.get("softmax")
    point = spec.workloads["llm"].shapes[Backend.NUMBA][2]
    ring = fresh_inputs(spec, point, "float32", ("normal",), 1, 3)
    Renewal(ring, 1).renew(ring)
    taken = Samples(ring)
    for side in ("other", "candidate"):
        for slot, lending in enumerate(ring):
            out = load_implementation(spec).honest(lending.inputs, {})["out"]
            if side == "candidate" and slot == 1 and change is not None:
                out *= change
            os.pwrite(lending.lent[1].fd, out.numpy().tobytes(), lending.lent[1].offset)
        taken.take(side)
    assert taken.wrong("candidate", "other") is wrong
    assert taken.wrong("other", "candidate") is False  # the oracle says which of the two is wrong
    for lending in ring:
        lending.close()


def test_a_timed_slot_is_judged_like_a_case() -> None:
    spec = registry.get("softmax")
    point = spec.workloads["llm"].shapes[Backend.NUMBA][2]
    [lending] = fresh_inputs(spec, point, "float32", ("normal",), 1, 1)
    right = load_implementation(spec).honest(lending.inputs, {})["out"]
    out = lending.lent[1]
    [(_, reason)] = left_in(lending, Stage.BENCHMARK, point.label).faults(Stage.BENCHMARK, point.label)
    assert reason.code == "not_written"
    os.pwrite(out.fd, right.numpy().tobytes(), out.offset)
    assert left_in(lending, Stage.BENCHMARK, point.label).faults(Stage.BENCHMARK, point.label) == ()
    right[7, 1000:] = 0.0
    os.pwrite(out.fd, right.numpy().tobytes(), out.offset)
    [(_, reason)] = left_in(lending, Stage.BENCHMARK, point.label).faults(Stage.BENCHMARK, point.label)
    assert reason.stage is Stage.BENCHMARK
    assert "only in row 7 of 512 and only in the last 24 of 1024 columns" in reason.text
    lending.close()


@given(st.integers(0, 2**128 - 1), st.text(max_size=5), st.text(max_size=5))
def test_derived_seeds_depend_on_seed_and_labels(seed: int, one: str, two: str) -> None:
    assert derive(seed, one, two) == derive(seed, one, two)
    assert 0 <= derive(seed, one) < 2**63
    assert derive(seed, one, two) != derive(seed ^ 1, one, two)
    if one != two:
        assert derive(seed, one) != derive(seed, two)


def test_seeds_are_128_bits_and_fresh() -> None:
    drawn = {draw_seed() for _ in range(20)}
    assert len(drawn) == 20
    assert max(drawn).bit_length() > 100


def test_the_seed_is_drawn_after_every_import_and_kept_for_replay() -> None:
    spec = registry.get("rms_norm")
    seen: list[object] = []
    run = make_run(spec, Backend.NUMBA, spec.baseline(Backend.NUMBA), PlainOpener(), small=True)
    opener = run.open_workers("numba")

    def watched(**options: object):
        worker = opener.open(**options)
        load = worker.load
        worker.load = lambda source: (seen.append(run.seed), load(source))[1]
        return worker

    run.open_workers = lambda mode: type("Watched", (), {"open": staticmethod(watched)})()
    assert judged(run)[0] is Outcome.PASSED
    assert seen == [None, None]
    assert run.seed is not None
    case = spec.cases[0]
    first = make_inputs(spec, case.dims, case.regime, case.attributes, "float32", run.seed, "smoke", case.name)
    again = make_inputs(spec, case.dims, case.regime, case.attributes, "float32", run.seed, "smoke", case.name)
    assert torch.equal(first["x"], again["x"])
