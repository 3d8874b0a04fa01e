"""The parts of the verdict page: places on axes, words for bits, ladders. What was not read is not invented."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.kernels.exports import COLUMNS, samples_csv
from apps.kernels.screens.sheet import Versus
from apps.kernels.screens.verdict import cases, failures, paired, steadiness, trust
from harness.domain.codec import from_document, schema
from harness.domain.samples import Samples
from harness.domain.verdict import Verdict
from harness.domain.vocabulary import Evidence, Stage


def example(**changes: Any) -> dict[str, Any]:
    """The schema's own example, changed."""
    return {**json.loads(json.dumps(schema("verdict")["examples"][0])), **changes}


def samples() -> dict[str, Any]:
    """The schema's own example of samples."""
    found: dict[str, Any] = json.loads(json.dumps(schema("samples")["examples"][0]))
    from_document(found, Samples)
    return found


def test_a_case_shows_both_bounds_and_which_one_applied() -> None:
    (one,) = cases.case_details(example(), {"cols=1021": {"layout": "strided", "reason": "prime length"}})
    assert (one.layout, one.why, one.anchor, one.short) == ("strided", "prime length", "case-1", "0.31")
    assert one.against_baseline == pytest.approx(2 / 3)
    assert one.bound is not None and (one.bound.honest, one.bound.cap) == (8e-7, 1e-4)
    assert "final rounding" in one.bound.binding_text
    assert [mark.name for mark in one.bound.marks] == ["honest", "error", "rounding", "cap"]
    assert [mark.binding for mark in one.bound.marks] == [False, False, True, False]
    assert one.bound.marks[0].at == 0 and one.bound.marks[-1].at == 1


def test_older_documents_and_exact_cases_have_no_bound() -> None:
    document = example()
    document["correctness"]["cases"][0] |= {"bound": None, "worst_ratio": None, "baseline_error": 0.0}
    (one,) = cases.case_details(document, {})
    assert one.bound is None and one.short == "ok" and one.against_baseline is None
    assert cases.case_details(example(correctness={"cases": []}), {}) == []
    assert cases.matrix([]) is None


def test_the_matrix_holds_every_case_once() -> None:
    document = example()
    (case,) = document["correctness"]["cases"]
    document["correctness"]["cases"] = [
        case, {**case, "name": "b", "regime": "nan"}, {**case, "name": "c", "dtype": "float16", "passed": False},
        {**case, "name": "measured 64x64", "regime": "mixed"}, {**case, "name": "d", "regime": "normal"}]
    details = cases.case_details(document, {"b": {"layout": "offset"}})
    table = cases.matrix(details)
    assert table is not None and table.columns == ("normal", "mixed", "spike", "nan"), "what is timed leads"
    assert sorted(one.anchor for _, cells in table.rows for cell in cells for one in cell) == [
        "case-1", "case-2", "case-3", "case-4", "case-5"]
    assert [place for place, _ in table.rows] == [
        "float32, contiguous", "float32, offset", "float16, contiguous", "float32, measured shape"]


REASON = {"code": "tail_wrong", "stage": "correctness", "text": "The tail is wrong.", "line": 2, "case": "cols=1021",
          "index": [3, 1020], "got": 0.0, "expected": 1.5, "bound": 1e-3}


def test_a_failure_says_case_place_numbers_pattern_and_line() -> None:
    document = example(reasons=[REASON])
    details = cases.case_details(document, {})
    (one,) = failures.failures(document, details, "a = 1\n  b = 2\n", {})
    assert one.case is details[0] and one.index == "[3, 1020]" and one.pattern.startswith("the tail")
    assert (one.got, one.expected, one.error, one.times) == ("0", "1.5", 1.5, pytest.approx(1500.0))
    assert (one.line, one.code_line) == (2, "b = 2")


def test_a_failure_that_names_no_element_invents_none() -> None:
    bare = {**dict.fromkeys(REASON), "code": "import_not_allowed", "stage": "static", "text": "No.", "line": 99}
    nan = {**REASON, "got": "nan", "case": "gone", "bound": None}
    first, second = failures.failures(example(reasons=[bare, nan]), [], "a\n", {"gone": {"reason": "rows of one"}})
    assert not first.located and first.pattern == "" and first.code_line == ""
    assert (second.got, second.error, second.times, second.case) == ("nan", None, None, None)
    assert (second.case_name, second.case_why) == ("gone", "rows of one")
    assert failures.failures(example(), [], "", {}) == []


def points_of(path: str) -> list[float]:
    """Places along x of a path of points."""
    return [float(x) for x in re.findall(r"M([-\d.]+) ", path)]


def test_the_paired_plot_shows_every_round_and_its_control_on_one_axis() -> None:
    document = samples()
    (shape, *_) = document["shapes"]
    role = next(iter(shape["versus"]))
    versus = {shape["shape"]: Versus(role, 1.31, 1.28, 1.33, 5)}
    plot = paired.paired_plots(document, role, 0.02, versus)[0]
    assert len(plot.rounds) == len(shape["versus"][role]) and len(plot.control) == len(shape["aa"])
    assert plot.band_x < plot.one_x < plot.band_x + plot.band_width
    assert plot.interval is not None and plot.interval == tuple(sorted(plot.interval))
    assert plot.left <= min(x for mark in plot.rounds for x in points_of(mark.points))
    assert max(x for mark in plot.rounds for x in points_of(mark.points)) <= plot.right
    assert len(plot.ticks) >= 2 and plot.height > plot.axis_y > plot.rounds[-1].y


def test_without_an_opponent_the_control_stands_alone_and_without_samples_nothing_does() -> None:
    document = samples()
    for shape in document["shapes"]:
        shape["versus"] = {}
    plots = paired.paired_plots(document, "baseline", 0.02, {})
    assert all(not plot.rounds and plot.interval is None for plot in plots)
    assert plots and plots[0].control_median is not None
    for shape in document["shapes"]:
        shape["aa"] = []
    assert paired.paired_plots(document, "baseline", 0.02, {}) == []
    assert paired.paired_plots(None, "baseline", 0.02, {}) == []


TIMES = st.floats(1e-2, 1e6)


@settings(max_examples=60)
@given(st.lists(st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=80), min_size=1, max_size=10),
       st.floats(0.02, 0.5))
def test_whatever_was_measured_stays_inside_the_plot(rounds: list[list[tuple[float, float]]], margin: float) -> None:
    pairs = [{"other": [a for a, _ in one], "candidate": [b for _, b in one]} for one in rounds]
    (plot,) = paired.paired_plots(
        {"shapes": [{"shape": "s", "weight": 1.0, "versus": {"baseline": pairs}, "aa": pairs}]}, "baseline", margin, {})
    for mark in (*plot.rounds, *plot.control):
        places = points_of(mark.points)
        assert all(plot.left <= x <= plot.right for x in (*places, mark.median_x))
        assert 1 <= len(places) <= paired.MOST_POINTS
        assert 0 < mark.y < plot.axis_y
    assert plot.thinned == any(len(one) > paired.MOST_POINTS for one in rounds)
    assert len(plot.ticks) <= paired.MOST_TICKS and all(plot.left <= tick.x <= plot.right for tick in plot.ticks)


def test_spread_is_held_against_the_limit_of_the_goal_if_there_is_one() -> None:
    (row,) = steadiness.spread_rows(example(), {"limits": {"cv": 0.1}})
    assert (row.state, row.share) == ("met", pytest.approx(0.2))
    (row,) = steadiness.spread_rows(example(), {"limits": {"cv": 0.01}})
    assert row.state == "not_met"
    (row,) = steadiness.spread_rows(example(), {})
    assert (row.state, row.share) == ("not_applicable", None)
    assert steadiness.spread_rows(example(timing=None), {}) == []


def test_rounds_tell_the_slowest_clock_and_who_disturbed_them() -> None:
    shapes = [{"shape": "a", "speed": [0.99, 0.8], "mhz": [], "disturbed": ["", "12% used by others"]},
              {"shape": "b", "speed": [1.0, 0.9], "mhz": [1980.0, None], "disturbed": ["", ""]}]
    first, second = steadiness.round_rows({"shapes": shapes})
    assert (first.speed, first.mhz, first.disturbed) == (0.99, (1980.0, 1980.0), ())
    assert (second.speed, second.mhz, second.disturbed) == (0.8, None, ("a: 12% used by others",))
    assert steadiness.round_rows(None) == [] == steadiness.round_rows({"shapes": [{"shape": "a"}]})


def test_telemetry_is_words_and_what_was_not_read_says_so() -> None:
    gpu = {"sm_mhz": [1965.0, 1980.0], "celsius": [41.0, 41.0], "power_w": None, "event_reasons": "0x24",
           "other_processes": 0, "rounds": 5, "rounds_repeated": 1, "rounds_capped": 0}
    found = {fact.name: fact for fact in steadiness.telemetry({"gpu": gpu, "load": 0.5, "speed": 0.85})}
    assert found["SM clock"].text == "1965–1980 MHz" and found["Temperature"].text == "41 °C"
    assert found["Throttle reasons"].text == "power limit reached, slowed for heat by the driver"
    assert found["Throttle reasons"].tone == found["Slowest clock"].tone == "warn"
    assert "Power" not in found and found["Other processes on the device"].text == "0"
    hidden = {fact.name: fact.text for fact in steadiness.telemetry({"gpu": {"event_reasons": None}})}
    assert hidden["Throttle reasons"] == "not readable here"
    known = steadiness.telemetry({"library": {"8192x8192": {"name": "Liger", "us": 67.02}}})
    assert known[0].text == "Liger 67.0 µs on 8192x8192"
    assert steadiness.telemetry({"library": "off: nothing was measured"})[0].text.startswith("off")
    device = steadiness.telemetry({"roofs": {"copy_gbps": 4249.0, "read_gbps": 4400.0, "matrix_datasheet_tflops": None},
                                   "native": {"host_us": 31.25, "shape": "8x8", "walls": ["landlock"]}})
    assert [fact.text for fact in device] == [
        "4249 GB/s, measured", "4400 GB/s, measured", "31.2 µs with host code on 8x8, behind: landlock"]
    assert steadiness.event_reasons("0x1") == [] and steadiness.telemetry({}) == []


def test_the_judges_slope_stands_beside_the_events() -> None:
    clocks = {"slopes": {"8192x8192": {"candidate": {"events_us": 66.0, "judge_us": 60.0, "launcher_us": 61.0}}}}
    (row,) = steadiness.slope_rows(clocks)
    assert (row.shape, row.side, row.ratio) == ("8192x8192", "candidate", pytest.approx(1.1))
    assert steadiness.slope_rows({}) == []


def test_ladders_name_every_level_and_mark_the_one_that_was_reached() -> None:
    assert [name for name, _ in trust.EVIDENCE] == [str(one) for one in Evidence]
    assert [rung.state for rung in trust.evidence_ladder("bounded")] == ["below", "here", "above"]
    assert {rung.state for rung in trust.evidence_ladder("")} == {"above"}
    assert [rung.state for rung in trust.isolation_ladder(0)] == ["here", "above", "above", "above"]
    assert trust.walls(example())[0] == ("landlock", "Landlock: only the files it needs")


def test_stages_are_held_against_what_the_evaluator_is_built_for() -> None:
    found = trust.latency(example(stages={"static": 0.3, "plan": 0.7}))
    by_name = {row.name: row for row in found.stages}
    assert set(by_name) == {str(stage) for stage in Stage}
    assert (found.seconds, found.budget) == (1.0, 20.0)
    assert by_name["static"].over and not by_name["plan"].over and by_name["plan"].share == pytest.approx(0.7)
    assert trust.latency(example(hardware="nvidia-h200")).budget == 12.0
    assert trust.latency(example(hardware="interpreter")).budget is None and found.held is None
    document = example(hardware="nvidia-h200")
    document["environment"]["clocks"]["device_held_s"] = 4.5
    assert (trust.latency(document).held, trust.latency(document).held_budget) == (4.5, 6.0)


def test_the_table_of_samples_holds_every_value_of_the_document() -> None:
    document = samples()
    lines = [line.split(",") for line in samples_csv(document).splitlines()]
    assert tuple(lines[0]) == COLUMNS
    for shape in document["shapes"]:
        pairs = [(a, b) for rounds in [*shape["versus"].values(), shape["aa"]] for one in rounds
                 for a, b in zip(one["other"], one["candidate"], strict=True)]
        written = [(float(row[5]), float(row[6])) for row in lines[1:] if row[0] == shape["shape"] and row[4]
                   and row[1] in ("paired", "control")]
        assert written == pairs
        single = sum(len(values) for key in ("hot", "repeated", "first_calls") for values in shape[key].values())
        rest = [row for row in lines[1:] if row[0] == shape["shape"] and row[1] not in ("paired", "control")]
        assert len(rest) == single + len(shape["cold"])


def test_the_example_is_a_verdict() -> None:
    from_document(copy.deepcopy(example()), Verdict)
