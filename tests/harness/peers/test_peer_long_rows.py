"""Rows too large for float64 are checked in a block of their positions or heads."""

from __future__ import annotations

import random

import pytest

from harness.domain.vocabulary import Backend
from harness.operators import registry
from harness.operators.base import ShapePoint
from harness.operators.implementation import load_implementation
from harness.operators.rope.cases import sizes
from harness.peers import checks
from harness.peers.checks import check, choose, keep
from harness.peers.ring import contents_of, rows_of
from tests.harness.peers.stub import table

TABLE = table()
DIMS = {"rope": sizes(2, 60, 4, 2, 5),
        "decode_attention": {"batch": 2, "q_heads": 16, "kv_heads": 8, "dim": 16, "max_seq": 30}}


@pytest.mark.parametrize("operator", list(DIMS))
def test_a_block_of_a_large_row_is_checked_and_the_rest_is_not_computed(operator, monkeypatch) -> None:
    spec, dims = registry.get(operator), DIMS[operator]
    attributes = {"scale": 0.25} if operator == "decode_attention" else {}
    made = contents_of(spec, ShapePoint("long", dims, 1.0, attributes), Backend.NUMBA, "llm", 11, random.Random(3))
    start = made.starts.draw()
    _, inputs = rows_of(made, range(2), "batch", start, TABLE)
    outputs = load_implementation(spec).honest(inputs, made.attributes)
    monkeypatch.setattr(checks, "BUDGET", 600)
    rows = choose(made, random.Random(1))
    assert len(rows) == 1
    one = keep(outputs, rows, start)
    found = check(one, made, TABLE, None)
    assert found.right and found.worst_ratio is not None and 0.0 <= found.worst_ratio <= 1.0
    block = checks.affordable(spec, {**dims, "batch": 1}, start)
    assert block is not None and 1 <= len(block) < dims[{"rope": "seq", "decode_attention": "kv_heads"}[operator]]
    last = spec.outputs[-1].name
    one.outputs[last] += 1.0
    assert not check(one, made, TABLE, None).right
    monkeypatch.setattr(checks, "BUDGET", 1 << 22)
    assert checks.affordable(spec, {**dims, "batch": 1}, start) is None
