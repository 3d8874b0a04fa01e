"""Figures of imported boards: shares of the roof by shape, and what agents reached with which effort. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from apps.core import figures
from apps.core.plotting import Figure, layout
from apps.core.plotting.frame import spread
from apps.imports.screens.board import ShapeBlock
from apps.imports.screens.campaigns import Curve

COLOURS = ("--plot-candidate", "--plot-library", "--plot-incumbent", "--plot-rejected")
DASHES = ("solid", "dash", "dot", "dashdot")
SIDES = {"ours": ("--plot-candidate", "circle"), "peer": ("--plot-library", "diamond-open"),
         "control": ("--plot-incumbent", "circle")}


def plain(text: str) -> str:
    """Plotly reads tags in texts."""
    return text.replace("<", "‹")


def roofs(blocks: Sequence[ShapeBlock]) -> Figure:
    """Share of the measured roof, one line of marks a shape, the first shape on top."""
    data: list[Figure] = []
    for side, (colour, symbol) in SIDES.items():
        marks = [(block.shape, one) for block in blocks for one in block.cells
                 if one.side == side and one.roof_share is not None]
        if not marks:
            continue
        data.append({
            "type": "scatter", "mode": "markers",
            "x": [(one.roof_share or 0.0) * 100 for _, one in marks], "y": [shape for shape, _ in marks],
            "marker": {"color": colour, "symbol": symbol, "size": 9, "line": {"width": 1.6, "color": colour}},
            "text": [plain(f"{one.name}, {shape}: {figures.percent(one.roof_share)}, "
                           f"{figures.microseconds(one.median)}") for shape, one in marks],
            "hovertemplate": "%{text}<extra></extra>",
        })
    order = [block.shape for block in blocks]
    roof = {"type": "line", "xref": "x", "x0": 100, "x1": 100, "yref": "paper", "y0": 0, "y1": 1,
            "line": {"color": "--line-strong", "width": 1, "dash": "dot"}}
    return {"data": data, "layout": layout(
        {"title": {"text": "share of the measured roof"}, "ticksuffix": " %", "rangemode": "tozero"},
        {"type": "category", "categoryorder": "array", "categoryarray": order[::-1], "automargin": True},
        right=24, shapes=[roof])}


def curves(lines: Sequence[Curve], axis: str) -> Figure:
    """The best ratio over the baseline so far, stepped, one line an agent, labelled at its end."""
    data: list[Figure] = []
    labels: list[Figure] = []
    shown = [line for line in lines if line.points]
    last = max((line.points[-1][0] for line in shown), default=1.0)
    for place, line in enumerate(shown):
        colour, name = COLOURS[place % len(COLOURS)], plain(line.agent)
        x = [at for at, _ in line.points]
        y = [best for _, best in line.points]
        data.append({
            "type": "scatter", "mode": "lines", "name": name, "x": [*x, last], "y": [*y, y[-1]],
            "line": {"shape": "hv", "color": colour, "width": 2, "dash": DASHES[place % len(DASHES)]},
            "text": [*(f"{name}, {figures.decimal(at, 0)}: {figures.ratio(best)}" for at, best in line.points), ""],
            "hovertemplate": "%{text}<extra></extra>",
        })
        labels.append({
            "xref": "paper", "x": 1, "xanchor": "left", "yref": "y", "y": y[-1], "showarrow": False, "xshift": 6,
            "text": f"{name} {figures.ratio(y[-1])}", "font": {"color": colour, "size": 11}})
    levels = [label["y"] for label in labels] + [1.0]
    spread(labels, (max(levels) - min(levels)) * 0.07 or 0.05)
    return {"data": data, "layout": layout(
        {"title": {"text": axis}, "showgrid": False, "rangemode": "tozero"}, {"ticksuffix": "×"}, right=150,
        annotations=labels)}
