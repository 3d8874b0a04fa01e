"""Figures of the page as plain dictionaries in plotly's schema. Colours are named by token and resolved in the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness.domain.peers import Row, Side
from harness.domain.report import ReportCampaign, ReportOperator

Plot = dict[str, Any]
INK = {"baseline": "--ink-soft", "playbook": "--ours", "autotune": "--search", "search": "--bulk"}
LIBRARIES = ("--lib-1", "--lib-2", "--lib-3", "--lib-4", "--lib-5", "--lib-6")
MARKS = {"playbook": "circle", "autotune": "diamond"}


def _layout(x: Plot, y: Plot, **more: Any) -> Plot:
    return {"margin": {"l": 60, "r": 16, "t": 8, "b": 48}, "hovermode": "closest", "xaxis": {"zeroline": False, **x},
            "yaxis": {"zeroline": False, **y}, "legend": {"orientation": "h", "y": 1.12}, **more}


def shares(operator: ReportOperator) -> Plot | None:
    """Per shape: how close each kernel and library comes to the measured roof, or the rate where no roof is known."""
    rows = [row for row in operator.rows if row.median_us is not None and row.side is not Side.CONTROL]
    if not rows:
        return None
    roofed = all(row.roof_share is not None for row in rows)
    names = list(dict.fromkeys(row.name for row in sorted(rows, key=lambda row: row.side is not Side.OURS)))
    libraries = [row.name for row in rows if row.side is Side.PEER]
    colours = dict(zip(dict.fromkeys(libraries), LIBRARIES, strict=False))
    data = []
    for name in names:
        mine = [row for row in rows if row.name == name]
        middle = [_value(row, roofed) for row in mine]
        data.append({
            "type": "bar", "name": name, "x": [row.shape for row in mine], "y": middle,
            "marker": {"color": INK.get(name, colours.get(name, "--ink-soft"))},
            "error_y": {"type": "data", "symmetric": False, "thickness": 1, "color": "--ink-soft",
                        "array": [_value(row, roofed, row.p10) - v for row, v in zip(mine, middle, strict=True)],
                        "arrayminus": [v - _value(row, roofed, row.p90) for row, v in zip(mine, middle, strict=True)]},
            "hovertext": [f"{name}, {row.shape}: {row.median_us:.2f} us ({row.p10:.2f} to {row.p90:.2f}, n = {row.n})"
                          for row in mine], "hoverinfo": "text"})
    title = "share of the measured roof" if roofed else "GB/s"
    y = {"title": {"text": title}, **({"tickformat": ".0%", "range": [0, 1.12]} if roofed else {})}
    return {"data": data, "layout": _layout({"type": "category"}, y, barmode="group", bargap=0.25)}


def _value(row: Row, roofed: bool, us: float | None = None) -> float:
    """The row's share or rate at its median, or at another time of it."""
    rate = (row.roof_share if roofed else row.gbps) or 0.0
    return rate if us is None or row.median_us is None else rate * row.median_us / us


def curves(campaigns: Iterable[ReportCampaign], by: str) -> Plot | None:
    """Best ratio over the baseline so far, by ``evaluation`` or by ``device_seconds``."""
    data = []
    for campaign in campaigns:
        points = [step for step in campaign.steps if step.best is not None]
        if not points:
            continue
        x = [getattr(step, by) for step in points]
        colour = INK.get(campaign.agent, "--ink-soft")
        data.append({"type": "scatter", "mode": "lines+markers", "name": campaign.agent, "x": x,
                     "y": [step.best for step in points], "line": {"shape": "hv", "color": colour, "width": 2},
                     "marker": {"color": colour, "symbol": MARKS.get(campaign.agent, "square"), "size": 7},
                     "hovertext": [f"{campaign.agent}, round {step.round}: {step.outcome}, best so far {step.best:.3f}x"
                                   for step in points], "hoverinfo": "text"})
    if not data:
        return None
    title = "evaluations" if by == "evaluation" else "seconds that the device was held"
    return {"data": data, "layout": _layout({"title": {"text": title}, "rangemode": "tozero"},
                                            {"title": {"text": "best so far over the baseline"}, "ticksuffix": "x"})}


def predictions(campaigns: Sequence[ReportCampaign]) -> Plot | None:
    """Predicted against measured gain, step by step, with the line on which both agree."""
    rows = [(row, row.measured, row.low, row.high) for campaign in campaigns for row in campaign.predictions
            if row.measured is not None and row.low is not None and row.high is not None]
    if not rows:
        return None
    most = max(0.1, *(max(row.predicted, high) for row, _, _, high in rows))
    least = min(0.0, *(min(row.predicted, low) for row, _, low, _ in rows))
    line = {"type": "scatter", "mode": "lines", "x": [least, most], "y": [least, most], "name": "as predicted",
            "line": {"color": "--ink-soft", "dash": "dot", "width": 1}, "hoverinfo": "skip"}
    points = {"type": "scatter", "mode": "markers", "name": "steps", "x": [row.predicted for row, *_ in rows],
              "y": [measured for _, measured, _, _ in rows], "marker": {"color": "--ours", "size": 8},
              "error_y": {"type": "data", "symmetric": False, "thickness": 1, "color": "--ours",
                          "array": [high - measured for _, measured, _, high in rows],
                          "arrayminus": [measured - low for _, measured, low, _ in rows]},
              "hovertext": [f"round {row.round}, {row.step}: predicted {row.predicted:+.1%}, measured {measured:+.1%}"
                            for row, measured, _, _ in rows], "hoverinfo": "text"}
    return {"data": [line, points], "layout": _layout(
        {"title": {"text": "predicted gain over the incumbent"}, "tickformat": "+.0%"},
        {"title": {"text": "measured gain"}, "tickformat": "+.0%"})}


def best_pairs(operators: Iterable[ReportOperator]) -> Plot | None:
    """Time of the best library over ours with its interval, for every operator and shape."""
    found = [(operator.name, one) for operator in operators for one in operator.best]
    if not found:
        return None
    data = [{"type": "scatter", "mode": "markers", "x": [one.ratio.ratio for _, one in found],
             "y": [f"{name} {one.shape}" for name, one in found], "marker": {"color": "--ours", "size": 8},
             "error_x": {"type": "data", "symmetric": False, "thickness": 1, "color": "--ours",
                         "array": [one.ratio.high - one.ratio.ratio for _, one in found],
                         "arrayminus": [one.ratio.ratio - one.ratio.low for _, one in found]},
             "hovertext": [f"{name}, {one.shape}: {one.peer} {one.peer_us:.1f} us, {one.kernel} {one.ours_us:.1f} us, "
                           f"{one.ratio.ratio:.3f}x" for name, one in found], "hoverinfo": "text"}]
    shape = {"type": "line", "xref": "x", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1,
             "line": {"color": "--ink-soft", "dash": "dot", "width": 1}}
    layout = _layout({"title": {"text": "best library over ours"}, "type": "log", "ticksuffix": "x",
                      "dtick": "D2"}, {"type": "category", "autorange": "reversed", "automargin": True},
                     shapes=[shape], showlegend=False)
    return {"data": data, "layout": layout, "height": 90 + 22 * len(found)}
