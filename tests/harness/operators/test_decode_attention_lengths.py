"""Lengths of a ragged shape: log-uniform, one from each part, so that the work hardly depends on the draw."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluation.judge import large
from harness.evaluation.judge.checking import dims_in_use
from harness.operators.base import ShapePoint, Workload
from harness.operators.decode_attention.regimes import fill_sequence
from harness.operators.decode_attention.spec import SPEC, mean_length

RAGGED = next(point for point in SPEC.workloads["llm"].shapes["triton"] if "ragged" in point.label)


def length(regime: str, max_seq: int, seed: int) -> int:
    q, cache = torch.zeros(2, 4), torch.zeros(max_seq, 1, 4)
    draw = torch.Generator().manual_seed(seed)
    return fill_sequence(regime, 0, q, cache, cache, torch.float32, 1.0, draw)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_batch_of_all_parts_has_the_work_that_the_shape_declares(seed: int) -> None:
    max_seq = RAGGED.dims["max_seq"]
    drawn = [length(regime, max_seq, seed + place) for place, regime in enumerate(RAGGED.regimes)]
    assert drawn == sorted(drawn) and drawn[0] == 1 and max_seq / 2 < drawn[-1] <= max_seq
    assert sum(drawn) / len(drawn) == pytest.approx(RAGGED.work["max_seq"], rel=0.2)


@given(st.integers(1, 40), st.integers(1, 8), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_every_length_is_within_the_cache(max_seq: int, parts: int, seed: int) -> None:
    for part in range(1, parts + 1):
        assert 1 <= length(f"length {part} of {parts}", max_seq, seed) <= max_seq


def test_the_mean_length_is_that_of_the_draw() -> None:
    draw = torch.Generator().manual_seed(1)
    drawn = [length("length 1 of 1", 300, seed) for seed in torch.randint(0, 2**31, (1500,), generator=draw).tolist()]
    assert sum(drawn) / len(drawn) == pytest.approx(mean_length(300), rel=0.1)
    assert mean_length(300) == pytest.approx(300 / math.log(301), rel=0.01)


def test_a_shape_made_in_parts_has_every_part_of_the_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "CHUNK", 1)  # two sequences at a time
    dims = {"batch": 8, "q_heads": 2, "kv_heads": 1, "dim": 4, "max_seq": 200}
    regimes = tuple(f"length {part} of 8" for part in range(1, 9))
    made = large.make_large_inputs(SPEC, dims, regimes, {"scale": 0.5}, "bfloat16", 4, "x")
    lengths = sorted(made["seq_lens"].tolist())
    for place, size in enumerate(lengths):
        assert math.floor(201 ** (place / 8)) <= size <= math.floor(201 ** ((place + 1) / 8))
    assert dims_in_use(SPEC, dims, made)["max_seq"] == round(sum(lengths) / 8)


def test_a_shape_without_regimes_of_its_own_takes_the_workloads() -> None:
    workload: Workload = SPEC.workloads["llm"]
    plain = ShapePoint("x", {"max_seq": 5}, 1.0)
    assert workload.regimes_of(plain) == workload.regimes and plain.work == plain.dims
    assert workload.regimes_of(RAGGED) == RAGGED.regimes and len(RAGGED.regimes) == RAGGED.dims["batch"]
