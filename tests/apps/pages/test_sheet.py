"""A verdict document as tables: nothing is invented, and no rule is decided anew."""

from __future__ import annotations

import json
from typing import Any

from apps.core.words import COMPARISONS
from apps.kernels.screens.sheet import STAGES, Versus, sheet
from harness.domain.codec import schema
from harness.domain.vocabulary import Stage

GOAL = {"limits": {"cv": 0.10, "registers": 255, "spill_bytes": 0, "shared_bytes": None}}


def example(**changes: Any) -> dict[str, Any]:
    """The schema's own example, changed."""
    return {**json.loads(json.dumps(schema("verdict")["examples"][0])), **changes}


def test_the_example_reads_as_it_says() -> None:
    found = sheet(example(), goal=GOAL)
    assert found.main is not None and (found.main.ratio, found.role_word) == (1.31, "incumbent")
    assert found.margin == 0.02 and found.rounds == 5
    assert found.roof_share == 0.81 and found.limits_met == (2, 2)
    row = found.shapes[0]
    assert row.other_median == 2233.0 * 1.31 and row.says == "faster"
    assert (found.passed_cases, found.worst_case.share if found.worst_case else None) == (1, 0.31)


def test_what_was_timed_with_nothing_beside_it_is_not_compared() -> None:
    document = example(comparison="none", compared_with=None)
    document["timing"]["shapes"][0]["versus"] = {}
    document["timing"]["overall"] = {}
    row = sheet(document).shapes[0]
    assert row.median > 0 and row.says == "alone"
    assert COMPARISONS["alone"].word == "not compared" and COMPARISONS["none"].word == "not timed"


def test_rounds_are_named_by_the_clock() -> None:
    assert sheet(example()).round_word == "process"
    assert sheet(example(hardware="nvidia-h200")).round_word == "launcher"


def test_without_timing_nothing_is_a_number() -> None:
    found = sheet(example(timing=None, comparison="none", compared_with=None), goal=GOAL)
    assert found.shapes == [] and found.main is None and found.noise is None and found.roof_share is None
    assert next(row for row in found.limits if row.name == "Spread (cv)").state == "not_applicable"


def test_stages_are_those_of_the_evaluator_and_the_refusing_one_is_marked() -> None:
    assert list(STAGES) == [str(stage) for stage in Stage]
    document = example(
        outcome="incorrect_nan",
        blame="candidate",
        stage="correctness",
        timing=None,
        comparison="none",
        stages={"admit": 0.1, "static": 0.1},
    )
    states = {row.name: row.state for row in sheet(document).stages}
    assert states["correctness"] == "fail" and states["static"] == "done" and states["benchmark"] == ""


def test_an_unsteady_machine_is_not_charged_to_a_kernel_that_passed() -> None:
    document = example()
    document["timing"]["shapes"][0]["cv"] = 0.2
    found = sheet(document, goal=GOAL)
    row = next(one for one in found.limits if one.name == "Spread (cv)")
    assert row.excused and row.state == "not_applicable" and found.limits_excused == 1
    assert found.limits_met[0] == found.limits_met[1] == sum(one.state == "met" for one in found.limits)
    refused = {**document, "outcome": "over_limit", "timing": document["timing"]}
    assert next(one for one in sheet(refused, goal=GOAL).limits if one.name == "Spread (cv)").state == "not_met"


def test_what_cannot_be_told_says_so() -> None:
    assert Versus("champion", 1.03, 1.01, 1.05, 5).says(0.02, 5) == "cannot_tell"
    assert Versus("champion", 1.05, 1.03, 1.07, 3).says(0.02, 5) == "cannot_tell"
    assert Versus("champion", 1.05, 1.03, 1.07, 4).says(0.02, 5) == "faster"
    assert Versus("champion", 0.9, 0.88, 0.92, 0).says(0.02, 5) == "slower"


def test_samples_add_the_distributions_of_the_compared_side_only() -> None:
    rounds = [{"other": [10.0, 11.0, 12.0], "candidate": [5.0, 5.5, 6.0]}]
    samples = {
        "shapes": [{"shape": "2048x4096", "weight": 1.0, "aa": [], "versus": {"incumbent": rounds, "baseline": []}}]
    }
    row = sheet(example(), samples=samples).shapes[0]
    assert row.other_median == 11.0 and row.density is not None and row.density.candidate_x < row.density.other_x
