"""The page: one file, nothing from a network, every number in a table, what people wrote stays text."""

from __future__ import annotations

import dataclasses
import json
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from harness.domain.codec import from_document, schema
from harness.domain.peers import Row
from harness.domain.report import CurvePoint, Report
from harness.domain.vocabulary import Comparison, Outcome
from harness.report import plots
from harness.report.page import PLOTLY, page
from harness.report.tables import rows_table

REPORT = from_document(schema("report")["examples"][0], Report)
OPERATOR = REPORT.operators[0]


class Parsed(HTMLParser):
    """Elements with their attributes, cells and plots."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def plots(self) -> list[dict[str, Any]]:
        return [json.loads(attrs["data-plot"] or "") for _, attrs in self.elements if "data-plot" in attrs]


def parsed(report: Report = REPORT) -> tuple[str, Parsed]:
    text = page(report, Path("absent"))
    return text, Parsed(text)


def test_nothing_comes_from_a_network() -> None:
    text, found = parsed()
    for tag, attrs in found.elements:
        for name in ("src", "href", "action", "srcset", "data"):
            assert (attrs.get(name) or "#").startswith("#"), (tag, attrs)
    assert "default-src 'none'" in text and "@import" not in text and "url(" not in text


def test_every_plot_has_words_and_a_table_beside_it() -> None:
    text, found = parsed()
    hosts = [attrs for _, attrs in found.elements if "data-plot" in attrs]
    assert len(hosts) >= 3 and all(attrs["aria-label"] and attrs["role"] == "img" for attrs in hosts)
    assert text.count("<caption>") >= len(hosts)
    assert sum(1 for tag, _ in found.elements if tag == "th") and "us</th>" in text


def test_the_numbers_of_the_document_are_in_the_tables() -> None:
    text, _ = parsed()
    for row in OPERATOR.rows:
        if row.median_us is None:
            assert f": absent: {escape(row.absent)}</li>" in text
        else:
            assert f">{row.median_us:.2f}<" in text and f">{row.n} ({len(row.round_us)})<" in text
    assert REPORT.figures[0].text in text and "not reached" in text
    assert "not timed" in page(_with_step(None), Path("absent"))


def test_a_remark_stands_once_below_the_table_with_its_shapes() -> None:
    first, second = (dataclasses.replace(OPERATOR.rows[0], name="Some library", shape=shape, detail="mode fast")
                     for shape in ("1x1", "2x2"))
    other = dataclasses.replace(second, median_us=None, absent="too wide for it", detail="")
    assert rows_of(first, second).count("<li>Some library: mode fast</li>") == 1
    assert "<li>Some library on 1x1: mode fast</li><li>Some library on 2x2: absent: too wide" in rows_of(first, other)
    assert "<li>" not in rows_of(dataclasses.replace(first, detail=""))


def rows_of(*rows: Row) -> str:
    return rows_table(dataclasses.replace(OPERATOR, rows=rows))


def test_many_missing_parts_stand_behind_their_number() -> None:
    parts = tuple(f"part {number} is missing." for number in range(5))
    few, many = (page(dataclasses.replace(REPORT, missing=some), Path("absent")) for some in (parts[:4], parts))
    assert "<p class='bad'>part 3 is missing.</p>" in few
    assert "5 parts of this report are missing</summary><ul><li>part 0" in many
    assert "<li>part 4 is missing.</li>" in many and "<p class='bad'>" not in many


def _with_step(ratio: Any) -> Report:
    step = CurvePoint(1, 1, "sha256:" + "0" * 64, Outcome.INCORRECT_NUMERIC, Comparison.NONE, ratio, None, 1.0, 0.5)
    campaign = dataclasses.replace(OPERATOR.campaigns[0], steps=(step,), log=(), predictions=())
    return dataclasses.replace(REPORT, operators=(dataclasses.replace(OPERATOR, campaigns=(campaign,)),))


def test_text_from_kernels_libraries_and_agents_stays_text() -> None:
    evil = "</script><script>alert(1)</script><b onmouseover='x'>\"&"
    row = dataclasses.replace(OPERATOR.rows[0], name=evil, detail=evil, shape=evil)
    campaign = dataclasses.replace(OPERATOR.campaigns[0], cause=evil, label=evil, agent=evil, log=(), predictions=())
    source = dict.fromkeys(OPERATOR.sources, evil)
    operator = dataclasses.replace(OPERATOR, title=evil, rows=(row,), campaigns=(campaign,), sources=source)
    text = page(dataclasses.replace(REPORT, operators=(operator,), missing=(evil,)), Path("absent"))
    assert "alert(1)</script>" not in text and "<b onmouseover" not in text
    assert len(re.findall(r"<script>", text)) == 2


def test_plots_are_in_plotlys_schema_and_colours_are_tokens() -> None:
    pytest.importorskip("plotly")
    import plotly.graph_objects as go

    colours = {"--ours": "#000000", "--search": "#111111", "--bulk": "#444444", "--ink-soft": "#222222",
               **{f"--lib-{number}": "#333333" for number in range(1, 7)}}
    for made in (plots.shares(OPERATOR), plots.curves(OPERATOR.campaigns, "evaluation"),
                 plots.curves(OPERATOR.campaigns, "device_seconds"), plots.best_pairs(REPORT.operators)):
        assert made is not None
        text = json.dumps(made)
        for token, colour in colours.items():
            text = text.replace(f'"{token}"', f'"{colour}"')
        assert '"--' not in text
        figure = json.loads(text)
        go.Figure(data=figure["data"], layout=figure["layout"])


def test_nothing_measured_draws_nothing() -> None:
    empty = dataclasses.replace(OPERATOR, rows=(), clocks=(), campaigns=(), best=(), kernels=())
    assert plots.shares(empty) is None and plots.best_pairs([empty]) is None
    assert plots.curves((), "evaluation") is None and plots.predictions(()) is None
    bare = dataclasses.replace(REPORT, operators=(empty,), figures=(), means=(), roofs=None)
    assert not parsed(bare)[1].plots()


def test_the_bundle_is_inside_where_it_can_be(tmp_path: Path) -> None:
    assert PLOTLY.read_text("utf-8")[:200] in page(REPORT)
    assert "tables alone" in page(REPORT, tmp_path / "absent.js")
    broken = tmp_path / "broken.js"
    broken.write_text("var a = '</script>';")
    assert "tables alone" in page(REPORT, broken)
