"""The trust series: it goes on where it was killed, mixes nothing, and counts what it says it counts."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import trust, trust_table
from benchmarks.places import joined
from benchmarks.series import OtherSeries, Series
from benchmarks.slowed import source
from harness.domain.samples import PairedRound, Samples, ShapeSamples
from harness.domain.vocabulary import Backend
from harness.operators import registry

HEADER = {"kind": "trust", "machine": "here"}


def session(series: str, comparison: str, *, effect: float = 0.0, ratio: float = 1.0, half: float = 0.01,
            margin: float = 0.02) -> dict:
    return {"series": series, "comparison": comparison, "effect": effect, "ratio": ratio, "margin": margin,
            "low": ratio * math.exp(-half), "high": ratio * math.exp(half), "noise": 0.005, "longer": False,
            "disturbed": 0, "seconds": 1.0}


def test_a_killed_series_goes_on_and_drops_only_the_line_that_was_cut_short(tmp_path):
    path = tmp_path / "results" / "series.jsonl"
    first = Series(path, HEADER)
    first.add({"series": "A/A", "number": 0})
    with path.open("a", encoding="utf-8") as file:
        file.write('{"series": "A/A", "num')
    again = Series(path, HEADER)
    assert again.lines == [{"series": "A/A", "number": 0}]
    again.add({"series": "A/A", "number": 1})
    assert [json.loads(text) for text in path.read_text().splitlines()][1:] == again.lines
    assert Series(path, HEADER).of(number=1) == [{"series": "A/A", "number": 1}]


def test_another_machine_never_continues_a_series(tmp_path):
    path = tmp_path / "series.jsonl"
    Series(path, HEADER).add({"series": "A/A", "number": 0})
    before = path.read_text()
    with pytest.raises(OtherSeries, match="machine"):
        Series(path, {**HEADER, "machine": "there"})
    assert path.read_text() == before


def test_a_damaged_line_in_the_middle_is_no_reason_to_guess(tmp_path):
    path = tmp_path / "series.jsonl"
    path.write_text(json.dumps(HEADER) + "\nnonsense\n" + json.dumps({"series": "A/A"}) + "\n")
    with pytest.raises(OtherSeries, match="line 2"):
        Series(path, HEADER)


def test_the_schedule_is_whole_mixed_and_the_same_each_time():
    planned = trust.schedule(20, 5)
    assert planned == trust.schedule(20, 5)
    assert len(set(planned)) == 20 + 3 * 5
    assert {name for name, _, _ in planned[:12]} > {"A/A"}
    assert [one for one in trust.schedule(40, 5) if one in planned] == planned


@pytest.mark.parametrize(("effect", "half", "margin", "wanted"), [
    (0.05, 0.01, 0.02, True), (0.02, 0.01, 0.02, False), (0.10, 0.02, 0.09, False), (0.10, 0.02, 0.05, True),
])
def test_detection_is_expected_beyond_margin_and_half_width(effect, half, margin, wanted):
    assert trust_table.expected(session("s", "slower", effect=effect, half=half, margin=margin)) is wanted


def test_the_table_counts_words_expectations_and_detections(capsys):
    lines = [session("A/A", "cannot_tell") for _ in range(98)] + [session("A/A", "faster")]
    lines += [{"series": "A/A", "effect": 0.0, "comparison": "refused", "reason": "unsteady"}]
    lines += [session("5% slower", "slower", effect=0.05, ratio=1 / 1.05) for _ in range(9)]
    lines += [session("5% slower", "cannot_tell", effect=0.05, ratio=1 / 1.04)]
    lines += [session("5% slower", "cannot_tell", effect=0.05, ratio=1 / 1.05, margin=0.1)]
    same, slower = trust_table.rows_of(lines)
    assert (same["called"], same["expected"]) == ({"faster": 1, "cannot_tell": 98, "slower": 0, "refused": 1}, 0)
    assert (slower["expected"], slower["detected"], slower["unexpected"], slower["told"]) == (10, 9, 1, 1)
    assert slower["median_slowdown"] == pytest.approx(0.05)
    trust_table.show([HEADER, *({**line, "number": number} for number, line in enumerate(lines))], each=True)
    printed = capsys.readouterr().out
    assert "1 of 100 called different" in printed
    assert "1 of 100 refused, since the time varied by more than the goal allows" in printed
    each = [text.split() for text in printed.splitlines() if text.startswith("5% slower")]
    assert [text[-1] for text in each[:11]] == ["detection"] * 10 + ["tell"]
    assert "detected in 9 of 10 sessions where it could be expected; of the other 1, 1 were called" in printed


@given(st.integers(1, 200), st.data())
def test_the_bound_on_a_rate_is_exact_and_above_what_was_seen(trials, data):
    hits = data.draw(st.integers(0, trials - 1))
    bound = trust_table.upper_bound(hits, trials)
    assert hits / trials < bound <= 1.0
    chance = sum(math.comb(trials, k) * bound**k * (1 - bound) ** (trials - k) for k in range(hits + 1))
    assert chance == pytest.approx(0.05, abs=1e-6)


def test_none_of_a_hundred_says_at_most_three_percent():
    assert trust_table.upper_bound(0, 100) == pytest.approx(1 - 0.05**0.01)


def test_a_repeated_row_costs_what_the_calibration_says():
    lines = [{"series": "calibration", "extra": 256, "ratio": 1 / 1.3}, {"series": "A/A", "extra": 0, "ratio": 1.0}]
    assert trust_table.cost_of_a_row(lines, 512) == pytest.approx(0.6)


@pytest.mark.parametrize(("place", "backend"), [("cpu", Backend.NUMBA), ("gpu", Backend.TRITON)])
def test_slowed_kernels_differ_in_one_number_and_pass_the_static_stage_up_to_it(place, backend):
    none, some = source(place, 0).splitlines(), source(place, 41).splitlines()
    assert [(a, b) for a, b in zip(none, some, strict=True) if a != b] == [(
        next(line for line in none if line.startswith("PARAMS")), next(line for line in some if "41" in line))]
    assert registry.get("rms_norm").signature.split("(")[1] in source(place, 3)


def test_a_longer_session_holds_the_rounds_of_both():
    def one(value: float) -> Samples:
        rounds = (PairedRound((value,), (value,)),) * 5
        return Samples((ShapeSamples("s", 1.0, {"baseline": rounds}, rounds, mhz=(1.0,) * 5, disturbed=("",) * 5),))

    (shape,) = joined(one(1.0), one(2.0)).shapes
    assert len(shape.versus["baseline"]) == len(shape.aa) == len(shape.mhz) == len(shape.disturbed) == 10
    assert shape.aa[-1] == PairedRound((2.0,), (2.0,))
