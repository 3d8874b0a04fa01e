"""A verdict on a terminal: errors side by side and the bound that applied."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.cli.verdict_text import print_verdict
from harness.domain.codec import from_document, schema
from harness.domain.verdict import Verdict


def printed(document: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    print_verdict(from_document(document, Verdict))
    return capsys.readouterr().out


def test_the_worst_case_shows_every_error_and_what_decided(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(schema("verdict")["examples"][0], capsys)
    assert "case cols=1021: largest error against float64 candidate 2e-07, baseline 3e-07, library 2e-07" in text
    assert "4.3e-06 of 0.15 (rounding decides: honest 8e-07, rounding 4.3e-06, cap 0.0001)" in text


def test_an_older_verdict_without_bounds_is_printed_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    document = copy.deepcopy(schema("verdict")["examples"][0])
    del document["correctness"]["cases"][0]["bound"]
    text = printed(document, capsys)
    assert "correctness 1/1, worst 0.31 of the bound" in text
    assert "bound there" not in text


def test_a_verdict_of_a_device_shows_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(schema("verdict")["examples"][1], capsys)
    assert "64 registers, 0 B spilled, 64 B shared, occupancy 50%, limited by registers" in text
    assert "memory of the largest call 256.0 MiB: 256.0 MiB of arguments, 0 B of scratch" in text
    assert "cold 68.4 us, hot 66.0 us, first call 426 ms" in text and "host included" not in text
    assert ("3,924.7 GB/s, 4.90 TFLOP/s, 92.0% of the measured copy roof, 90.0% of the measured read roof, 0.7% of the "
            "measured matmul roof, 90% of the one that binds") in text
    assert "profile by Nsight Compute" in text and "8192x8192: Bound by memory" in text


def test_a_profile_without_counters_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    document = copy.deepcopy(schema("verdict")["examples"][1])
    document["profile"].update(source="launcher clock", tool=None, why="ncu is not installed here")
    assert "profile by launcher clock (ncu is not installed here)" in printed(document, capsys)


def test_libraries_are_named_or_their_rules_are_off(capsys: pytest.CaptureFixture[str]) -> None:
    document = copy.deepcopy(schema("verdict")["examples"][1])
    assert "libraries" not in printed(document, capsys)
    document["environment"]["clocks"]["library"] = {"8192x8192": {"name": "Liger", "us": 67.02}}
    document["suspicious"] = ["8192x8192: twice as fast as the best library."]
    text = printed(document, capsys)
    assert "best libraries of this environment class: Liger 67.0 us on 8192x8192" in text
    assert "suspicious, a person has to look: 8192x8192: twice" in text
    document["environment"]["clocks"]["library"] = "off: no library was measured in this environment class"
    assert "rules on libraries off: no library was measured" in printed(document, capsys)


@pytest.mark.parametrize(("stage", "level", "said"), [
    ("static", 0, "  nothing of it ran, evaluator"), ("smoke", 0, "  isolation level 0, evaluator"),
    ("static", 3, "  isolation level 3, evaluator")])
def test_a_level_is_said_where_something_ran(stage: str, level: int, said: str,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    document = copy.deepcopy(schema("verdict")["examples"][0])
    document["stage"], document["evaluator"]["isolation"]["level"] = stage, level
    assert said in printed(document, capsys)


def test_a_case_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    document = copy.deepcopy(schema("verdict")["examples"][0])
    document["notes"] = [{"code": "a", "stage": "smoke", "case": "cols=7", "text": "Case 'cols=7': it is not written."},
                         {"code": "b", "stage": "smoke", "case": "cols=9", "text": "It is not written."}]
    text = printed(document, capsys)
    assert "[a] Case 'cols=7': it is not" in text and "[b] case cols=9: It is not" in text
