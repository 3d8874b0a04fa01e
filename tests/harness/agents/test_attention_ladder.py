"""The ladder of decode_attention on Triton: the order of its climb, and what its top launches on an H200."""

from __future__ import annotations

import pytest

from harness.agents.playbook import edit
from harness.agents.playbook.agent import playable
from harness.domain.vocabulary import Backend
from harness.operators.registry import get
from tests.harness.agents.test_elementwise_ladders import context, rungs

CLIMB = ("split-cache", "split-by-length", "values-by-length", "shorter-way")
"""The rungs that a campaign on a GPU takes, where all of them are measured to be faster."""


def _top() -> str:
    source = get("decode_attention").baseline(Backend.TRITON)
    for key in CLIMB:
        source = next(made for move, made in rungs("decode_attention", Backend.TRITON, source) if move.key == key)
    return source


def test_the_climb_goes_by_predictions_alone_to_its_top() -> None:
    """What the tables say already is not proposed again, and what is left behind them are single values."""
    source, taken = get("decode_attention").baseline(Backend.TRITON), list[str]()
    while len(taken) < len(CLIMB):
        ready = playable(context("decode_attention", Backend.TRITON, source))[0]
        taken.append(ready.move.key)
        source = ready.source
    assert tuple(taken) == CLIMB
    assert source == _top()
    left = {item.move.key for item in playable(context("decode_attention", Backend.TRITON, source))}
    assert left == {"num_warps-8", "block_n-32"}


def test_tables_of_the_top_have_a_value_for_every_bucket() -> None:
    buckets = get("decode_attention").buckets
    assert buckets is not None
    tables = {key: value for key, value in edit.params(_top()).items() if isinstance(value, dict)}
    assert set(tables) == {"num_stages", "PROGRAMS", "SPAN"}
    for key, table in tables.items():
        assert list(table) == [name for name, _ in buckets.bounds], key


@pytest.mark.sandbox
def test_the_top_leaves_whole_what_fills_the_device_and_spills_no_registers() -> None:
    """A batch of 16 is one program per sequence and cache head, with a multiprocessor to itself; what is split is cut
    into no more parts than are under way at once; 64 short sequences run in one wave."""
    from harness.backends.triton.compiler.compiled import compile_plans
    from harness.backends.triton.compiler.process import compiler_for
    from harness.backends.triton.planning import record_plans
    from harness.backends.triton.targets import find_target
    from harness.evaluation.sandbox import opener

    spec, target = get("decode_attention"), find_target("nvidia-h200")
    points = spec.workloads["llm"].shapes[Backend.TRITON]
    worker = opener("triton-plan").open(deadline_s=60.0, options={"target": target.name})
    try:
        plans = record_plans(worker, _top(), spec.arguments, points, "bfloat16", target, {})
    finally:
        worker.close()
    rows = {point.label.replace(" H32/8 D128", ""): one.launches for point, one in
            zip(points, compile_plans(plans, compiler_for(target), deadline_s=60.0), strict=True)}
    grids = {label: [(row.function, row.grid[0] * row.grid[1]) for row in launches]
             for label, launches in rows.items()}
    assert grids == {
        "B1 S8192": [("_attend_part", 128), ("_combine", 128)],
        "B1 S131072": [("_attend_part", 264), ("_combine", 128)],
        "B16 S4096": [("_attend", 128)],
        "B64 S1024": [("_attend", 512)],
        "B64 S8192": [("_attend", 512)],
        "B32 S16384 ragged": [("_attend_part", 8192), ("_combine", 4096)],
    }
    assert {row.spill_bytes for launches in rows.values() for row in launches} == {0}
    short = rows["B64 S1024"][0]
    assert short.registers is not None
    assert target.registers_per_sm // (32 * short.num_warps * short.registers) * target.multiprocessors >= 512
