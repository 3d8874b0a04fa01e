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
