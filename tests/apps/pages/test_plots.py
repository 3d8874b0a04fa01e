"""Figures are valid for plotly, and say what the rows say."""

from __future__ import annotations

import html
import json
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go
import pytest
from django.template import Context, Template

from apps.campaigns.plots import Reference, RoundPoint, comparison, incumbent_steps, speed_up
from apps.core.plotting import to_json
from apps.kernels.plots import ShapeSides, density, distribution, thin
from apps.leaderboards.plots import BoardDot, dots

POINTS = [
    RoundPoint(0, "accepted", 1.0, 1.0, 1.0, "passed"),
    RoundPoint(1, "accepted", 1.41, 1.40, 1.42, "faster"),
    RoundPoint(2, "cannot_tell", 1.42, 1.39, 1.45, "cannot tell"),
    RoundPoint(3, "refused", None, None, None, "timeout"),
    RoundPoint(4, "slower", 1.2, 1.19, 1.21, "slower"),
]


def resolved(value: Any) -> Any:
    """Tokens replaced as the browser does."""
    if isinstance(value, str) and value.startswith("--"):
        return "#123456"
    if isinstance(value, list):
        return [resolved(one) for one in value]
    return {key: resolved(one) for key, one in value.items()} if isinstance(value, dict) else value


def test_all_figures_fit_plotlys_schema() -> None:
    sides = [ShapeSides("a", (10.0, 11.0, 10.5), (8.0, 8.2, 8.1)), ShapeSides("b", (), ())]
    for figure in (
        speed_up(POINTS, [Reference("champion", "champion", 1.3), Reference("roof", "roof", 1.9)], noise=0.004),
        speed_up([]),
        speed_up(POINTS, log_axis=True, doubtful=[1, 2]),
        comparison([("C-1", [(0, 1.0), (2, 1.4)]), ("C-2", [])]),
        comparison([]),
        distribution(sides, "champion"),
        dots([BoardDot("1 A", 1.2, 1.1, 1.3, "own"), BoardDot("B", 1.0, None, None, "library")], "x"),
        dots([BoardDot("A", 1.2, 1.1, 1.3, "own", in_doubt=True), BoardDot("B", 1.0, None, None, "library")], "x"),
        dots([], "x"),
    ):
        go.Figure(resolved(json.loads(to_json(figure))))


def test_the_incumbent_steps_only_where_a_round_was_accepted() -> None:
    assert incumbent_steps(POINTS) == [(0, 1.0), (1, 1.41)]
    figure = speed_up(POINTS, noise=0.02)
    line = next(trace for trace in figure["data"] if trace["mode"] == "lines+markers")
    assert line["x"][:2] == [0.0, 1.0] and line["y"] == [1.0, 1.41, 1.41]
    low, high = figure["data"][0]["y"][1], figure["data"][1]["y"][1]
    assert (round(low / 1.41, 3), round(high / 1.41, 3)) == (0.94, 1.06)


def test_what_was_not_timed_is_marked_below_everything_timed() -> None:
    figure = speed_up(POINTS)
    refused = next(trace for trace in figure["data"] if trace.get("marker", {}).get("symbol") == "triangle-down-open")
    assert refused["x"] == [3] and refused["y"][0] < 1.0
    assert "not timed" in refused["text"][0]


def test_json_cannot_leave_its_attribute_and_holds_no_tags_of_names() -> None:
    figure = {"data": [], "layout": {"title": {"text": "\"></div><b>&"}}}
    text = Template('<div data-figure="{{ figure }}"></div>').render(Context({"figure": to_json(figure)}))
    inside = text.removeprefix('<div data-figure="').removesuffix('"></div>')
    assert not set(inside) & set("<>\"'")
    assert json.loads(html.unescape(inside)) == figure
    assert "<a" not in json.dumps(comparison([("<a href=x>", [(0, 1.0)])]), ensure_ascii=False)


def test_thinning_keeps_the_ends_and_density_has_both_medians() -> None:
    samples = [float(value) for value in range(1000)]
    kept = thin(samples, 100)
    assert len(kept) == 100 and (kept[0], kept[-1]) == (0.0, 999.0)
    found = density([10.0, 11.0, 12.0], [5.0, 5.5, 6.0])
    assert found is not None and found.candidate_x < found.other_x
    assert density([1.0], [1.0, 2.0]) is None
    assert density([2.0, 2.0], [2.0, 2.0]) is not None


def test_what_was_measured_while_the_device_drifted_is_shaded() -> None:
    shapes = speed_up(POINTS, doubtful=[2])["layout"]["shapes"]
    assert [(one["x0"], one["x1"]) for one in shapes if one["type"] == "rect"] == [(1.5, 2.5)]
    rows = [BoardDot("best", 1.3, None, None, "own"), BoardDot("doubtful", 1.2, None, None, "own", in_doubt=True),
            BoardDot("last", 1.0, None, None, "library")]
    shades = [one for one in dots(rows, "x")["layout"]["shapes"] if one["type"] == "rect"]
    assert [(one["y0"], one["y1"]) for one in shades] == [(0.5, 1.5)]  # counted from the bottom


def label_places(figure: Any) -> list[tuple[float, str]]:
    """(share of the axis, text) of every label that stands at a line."""
    low, high = figure["layout"]["yaxis"]["range"]
    return [((label["y"] - low) / (high - low), label["text"]) for label in figure["layout"]["annotations"]
            if label["yref"] == "y"]


@pytest.mark.parametrize("log_axis", [False, True])
@pytest.mark.parametrize("roof", [1.45, 1.9, 12.0])
def test_labels_of_lines_stand_apart_and_below_the_note_of_a_distant_roof(log_axis: bool, roof: float) -> None:
    references = [Reference("champion", "champion", 1.40), Reference("library", "library", 1.41),
                  Reference("roof", "roof", roof)]
    figure = speed_up(POINTS, references, noise=0.004, log_axis=log_axis)
    places = sorted(label_places(figure))
    assert all(above - below > 0.04 for (below, _), (above, _) in pairwise(places)), places
    beyond = [label for label in figure["layout"]["annotations"] if label["yref"] == "paper"]
    assert places[-1][0] < (0.92 if beyond else 1.0)
    assert {text.split()[0] for _, text in places} >= {"incumbent", "champion", "library"}
