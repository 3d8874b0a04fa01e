"""Climbs of row-wise operators on Triton: their order, what their tops launch on an H200, that tops are right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.agents.playbook import edit
from harness.agents.playbook.agent import playable
from harness.agents.protocol import AgentContext
from harness.campaign.context import context_of
from harness.campaign.start import start_state
from harness.domain.digest import digest_source
from harness.domain.goal import Goal
from harness.domain.request import SourceRef
from harness.domain.summary import ShapeSummary, VerdictSummary
from harness.domain.vocabulary import Backend, Outcome, Stage, Tier
from harness.engine.actions import AskAgent
from harness.engine.results import BaselineMeasured
from harness.engine.step import apply
from harness.operators.registry import get
from tests.harness.judge.evaluations import judged, judged_right, make_run

LONG, MEDIUM = "8192x8192", "4096x4096"
CLIMBS: dict[str, tuple[str, ...]] = {
    "rms_norm": ("one-read", "results-stay", "medium-twice"),
    "softmax": ("one-read", "split-rows", "results-stay"),
    "add_rms_norm": ("one-read", "inputs-stay"),
    "layer_norm": ("one-read", "two-reads"),
}
"""The rungs that a campaign on a GPU takes, where all of them are measured to be faster."""
BASELINE_US = {
    "rms_norm": {MEDIUM: 22.0, LONG: 96.0, "32x8192": 7.3},
    "softmax": {MEDIUM: 26.0, LONG: 112.0, "32x128256": 39.0},
    "add_rms_norm": {MEDIUM: 55.0, LONG: 200.0, "32x8192": 8.0},
    "layer_norm": {MEDIUM: 33.0, LONG: 110.0, "32x8192": 8.0},
}
"""Microseconds of baselines, about, as an H200 has them."""
LEFT = {
    "rms_norm": {"row-kernel", "whole-rows", "split-reduction"},
    "softmax": {"one-division", "row-kernel", "fewer-warps", "parts-64", "parts-16", "whole-rows", "block-32768",
                "online-maximum"},
    "add_rms_norm": {"rounded-sum", "split-reduction"},
    "layer_norm": {"results-stay", "row-pairs", "mean-of-squares", "split-reduction", "block-32768"},
}
"""What is tried behind the top: steps that are predicted to bring less than a hundredth."""
LAUNCHES = {
    "rms_norm": {MEDIUM: [("_rms_norm", 4096, 4)], LONG: [("_rms_norm", 8192, 4)], "32x8192": [("_rms_norm", 32, 4)]},
    "softmax": {MEDIUM: [("_softmax", 4096, 8)], LONG: [("_softmax", 8192, 8)],
                "32x128256": [("_partial_softmax", 32, 8), ("_combine_softmax", 32, 8)]},
    "add_rms_norm": {MEDIUM: [("_add_rms_norm", 4096, 4)], LONG: [("_add_rms_norm", 8192, 16)],
                     "32x8192": [("_add_rms_norm", 32, 16)]},
    "layer_norm": {MEDIUM: [("_layer_norm", 4096, 8)], LONG: [("_layer_norm", 8192, 8)],
                   "32x8192": [("_layer_norm", 32, 8)]},
}
"""Function, programs along the first axis and warps."""


def context(operator: str, source: str | None = None) -> AgentContext:
    """The first turn of a heavy campaign with ``source`` as its incumbent, by the baseline's times."""
    state = start_state(Goal(operator, Backend.TRITON, "nvidia-h200", "llm", grant=Tier.HEAVY))
    points = get(operator).workloads["llm"].shapes[Backend.TRITON]
    shapes = tuple(ShapeSummary(p.label, p.weight, BASELINE_US[operator][p.label], roof_share=0.5) for p in points)
    verdict = VerdictSummary("sha256:0", Outcome.PASSED, Stage.RECHECK, timed=True, shapes=shapes)
    now = context_of(apply(state, BaselineMeasured(verdict)), AskAgent(1, "diagnosis"),
                     hardware={"multiprocessors": 132})
    return now if source is None else replace(now, incumbent=SourceRef(digest_source(source), source))


def climbed(operator: str, keys: tuple[str, ...]) -> str:
    """The kernel that the moves called ``keys`` make of the baseline, one after the other."""
    source = get(operator).baseline(Backend.TRITON)
    for key in keys:
        source = next(one.source for one in playable(context(operator, source)) if one.move.key == key)
    return source


@pytest.mark.parametrize("operator", list(CLIMBS))
def test_the_climb_goes_by_predictions_alone_to_its_top(operator: str) -> None:
    source, taken = get(operator).baseline(Backend.TRITON), list[str]()
    while len(taken) < len(CLIMBS[operator]):
        best = playable(context(operator, source))[0]
        taken.append(best.move.key)
        source = best.source
    assert tuple(taken) == CLIMBS[operator]
    left = {one.move.key: one.hypothesis.expected_gain for one in playable(context(operator, source))}
    assert left.keys() == LEFT[operator]
    assert max(left.values()) < 0.01


@pytest.mark.parametrize("operator", list(CLIMBS))
def test_a_second_way_to_the_top_is_predicted_behind_the_first(operator: str) -> None:
    """A move that was refused leaves the next best of those that were measured to help."""
    source = climbed(operator, CLIMBS[operator][:-1])
    ready = [one.move.key for one in playable(context(operator, source))]
    wanted = {"rms_norm": ["medium-twice"], "softmax": ["results-stay", "row-tables"],
              "add_rms_norm": ["inputs-stay", "row-wide-blocks"],
              "layer_norm": ["two-reads", "row-pairs", "results-stay"]}[operator]
    assert ready[: len(wanted)] == wanted


@pytest.mark.parametrize("operator", list(CLIMBS))
def test_tables_of_the_top_have_a_value_for_every_bucket(operator: str) -> None:
    buckets = get(operator).buckets
    assert buckets is not None
    params = edit.params(climbed(operator, CLIMBS[operator]))
    for key in ("BLOCK", "num_warps"):
        table = params[key]
        assert isinstance(table, dict) and list(table) == [name for name, _ in buckets.bounds], key


@pytest.mark.sandbox
@pytest.mark.parametrize("operator", list(CLIMBS))
def test_what_the_top_launches_spills_no_registers(operator: str) -> None:
    from harness.backends.triton.compiler.compiled import compile_plans
    from harness.backends.triton.compiler.process import compiler_for
    from harness.backends.triton.planning import record_plans
    from harness.backends.triton.targets import find_target
    from harness.evaluation.sandbox import opener

    spec, target = get(operator), find_target("nvidia-h200")
    points = spec.workloads["llm"].shapes[Backend.TRITON]
    worker = opener("triton-plan").open(deadline_s=60.0, options={"target": target.name})
    try:
        top = climbed(operator, CLIMBS[operator])
        plans = record_plans(worker, top, spec.arguments, points, "bfloat16", target, {})
    finally:
        worker.close()
    rows = {point.label: one.launches for point, one in
            zip(points, compile_plans(plans, compiler_for(target), deadline_s=60.0), strict=True)}
    assert {label: [(row.function, row.grid[0], row.num_warps) for row in launches]
            for label, launches in rows.items()} == LAUNCHES[operator]
    assert {row.spill_bytes for launches in rows.values() for row in launches} == {0}


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.parametrize(("operator", "keys"), [
    ("rms_norm", CLIMBS["rms_norm"]),
    ("rms_norm", ("one-read", "results-stay", "row-kernel", "rows-together")),
    ("softmax", CLIMBS["softmax"]),
], ids=lambda value: value if isinstance(value, str) else value[-1])
def test_tops_are_right_in_the_interpreter(operator: str, keys: tuple[str, ...]) -> None:
    from harness.evaluation.sandbox import opener

    run = make_run(get(operator), Backend.TRITON, climbed(operator, keys), opener)
    assert judged_right(run) == (Outcome.PASSED, None)


@pytest.mark.slow
@pytest.mark.sandbox
def test_sums_about_the_mean_of_a_few_values_pass_every_case_of_a_device() -> None:
    """In float32, whose bound is the tightest: outliers, far offsets, steps of a half, rows of 65,537 values."""
    from harness.evaluation.sandbox import opener

    spec = get("layer_norm")
    cases = tuple(replace(case, dtype="float32") for case in spec.cases if case.dims["rows"] < 1000)
    run = make_run(replace(spec, interpret_cases=cases), Backend.TRITON, climbed("layer_norm", CLIMBS["layer_norm"]),
                   opener)
    assert judged(run) == (Outcome.PASSED, None)
