"""How figures read, that every state has its word, and that every code has its troubleshooting entry."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.campaigns.choices import CampaignState, JobState, RoundState
from apps.core import figures, troubleshooting, words
from apps.kernels.choices import SlotState
from apps.reviews.choices import DecisionKind, RequestState, RequirementState
from harness.domain.vocabulary import Blame, Comparison, Conclusion, EventKind, Outcome
from harness.evaluation.static.findings import CODES

N = "\u202f"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (figures.microseconds(4.58), f"4.58{N}µs"),
        (figures.microseconds(125.12), f"125.1{N}µs"),
        (figures.microseconds(9999.96), f"10{N}000.0{N}µs"),
        (figures.microseconds(12_345), f"12.35{N}ms"),
        (figures.microseconds(426_000), f"426.0{N}ms"),
        (figures.microseconds(None), "not timed"),
        (figures.microseconds(12.3, unit=False), "12.30"),
        (figures.ratio(1.0464), "1.046×"),
        (figures.ratio(None), "not timed"),
        (figures.interval(1.041, 1.051), "[1.041, 1.051]"),
        (figures.interval(None, 1.0), ""),
        (figures.change(1.037), f"+3.7{N}%"),
        (figures.change(0.951), f"−4.9{N}%"),
        (figures.change(1.00001), f"+0.0{N}%"),
        (figures.change_interval(0.992, 1.002), "[−0.8, 0.2]"),
        (figures.percent(0.91), f"91.0{N}%"),
        (figures.gigabytes_per_second(4249.3), f"4{N}249{N}GB/s"),
        (figures.gigabytes_per_second(30.14), f"30.1{N}GB/s"),
        (figures.teraflops(651.2), f"651{N}TFLOP/s"),
        (figures.teraflops(0.32), f"0.32{N}TFLOP/s"),
        (figures.teraflops(0.0021), f"2.1{N}GFLOP/s"),
        (figures.teraflops(0.031), f"31{N}GFLOP/s"),
        (figures.counted(1, "round"), "1 round"),
        (figures.counted(0, "round"), "0 rounds"),
        (figures.size(34 * 1024), f"34{N}KiB"),
        (figures.size(0), f"0{N}B"),
        (figures.size(1.5 * 2**20), f"1.5{N}MiB"),
        (figures.size(None), "unknown"),
        (figures.duration(0.02), f"0.02{N}s"),
        (figures.duration(34), f"34{N}s"),
        (figures.duration(5 * 3600 + 12 * 60), f"5{N}h 12{N}min"),
        (figures.duration(125), f"2{N}min"),
        (figures.duration(0), f"0{N}s"),
        (figures.duration(49 * 3600), f"2{N}d 1{N}h"),
        (figures.bound_share(0.816), "0.82"),
        (figures.scientific(2.4e-6), "2.4e−6"),
        (figures.scientific(0.0), "0"),
        (figures.scientific(float("inf")), "∞"),
        (figures.short_digest("sha256:9f3c71e1aa"), "9f3c71e1"),
        (figures.count(1284), f"1{N}284"),
        (figures.decimal(float("nan"), 2), "not a number"),
        (figures.decimal(-0.0001, 2), "0.00"),
    ],
)
def test_figures_read_as_agreed(shown: str, expected: str) -> None:
    assert shown == expected


@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.integers(0, 4))
def test_numbers_can_be_read_back(value: float, places: int) -> None:
    text = figures.decimal(value, places)
    assert float(text.replace(N, "").replace("−", "-")) == pytest.approx(value, abs=10.0**-places, rel=1e-9)
    assert not text.startswith("-")


@pytest.mark.parametrize(("text", "shown"), [
    ("weighs 70 % latency", f"weighs 70{N}% latency"), ("reaches 12% of it", f"reaches 12{N}% of it"),
    ("took 5 min, 3.2 s and 40 µs", f"took 5{N}min, 3.2{N}s and 40{N}µs"),
    ("34 KiB at 4 GB/s", f"34{N}KiB at 4{N}GB/s"), ("100 GB/sample", "100 GB/sample"),
    ("3 slots, 2 seconds, 4 minutes, 1 host", "3 slots, 2 seconds, 4 minutes, 1 host"),
])
def test_a_unit_stays_on_the_line_of_its_number(text: str, shown: str) -> None:
    assert figures.glued(text) == shown


def test_templates_keep_per_cent_signs_with_their_number() -> None:
    templates = (troubleshooting.folder().parents[1] / "apps").glob("*/templates/**/*.html")
    assert [path.name for path in templates if re.search(r"\d %(?!\})", path.read_text("utf-8"))] == []


def test_clock_times_say_the_day_when_it_is_another() -> None:
    now = datetime(2026, 11, 29, 16, 14, tzinfo=UTC)
    assert figures.clock(now - timedelta(hours=2), now) == "14:14"
    assert figures.clock(now - timedelta(days=1), now) == "yesterday 16:14"
    assert figures.clock(now - timedelta(days=3), now) == "26 Nov 16:14"
    assert figures.clock(datetime(2025, 3, 1, tzinfo=UTC), now) == "1 Mar 2025 00:00"
    assert figures.clock(None, now) == "never"


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("outcome", Outcome),
        ("comparison", Comparison),
        ("blame", Blame),
        ("conclusion", Conclusion),
        ("campaign", CampaignState.values),
        ("round", RoundState.values),
        ("job", JobState.values),
        ("review", RequestState.values),
        ("decision", DecisionKind.values),
        ("requirement", RequirementState.values),
        ("slot", SlotState.values),
    ],
)
def test_every_state_has_a_word_and_an_icon_of_the_sprite(kind: str, values: list[str]) -> None:
    sprite = (troubleshooting.folder().parents[1] / "apps/core/templates/core/partials/sprite.html").read_text("utf-8")
    for value in values:
        mark = words.VOCABULARY[kind][str(value)]
        assert f'id="i-{mark.icon}"' in sprite, mark


def test_every_event_kind_has_an_icon() -> None:
    assert set(words.EVENT_ICONS) == {str(kind) for kind in EventKind}


def test_every_outcome_and_every_static_code_has_an_entry() -> None:
    missing = [code for code in [*map(str, Outcome), *CODES] if troubleshooting.entry(code) is None]
    assert missing == []


def test_entries_have_symptom_cause_and_remedy() -> None:
    for entry in troubleshooting.entries().values():
        heads = [line for line in entry.text.splitlines() if line.startswith("## ")]
        assert heads == ["## Symptom", "## Cause", "## What to do"], entry.code
        assert entry.title and "<h2>" in entry.html


def test_entries_are_escaped_and_codes_are_checked() -> None:
    html = troubleshooting.render("A `b<c` and <script>\n\n- one\n- two\n\n```\nx < y\n```")
    assert "<script>" not in html and "<code>b&lt;c</code>" in html and "<li>two</li>" in html
    assert troubleshooting.entry("../README") is None
