"""The figures of campaigns: speed-up over rounds, and the comparison of several campaigns. Pure functions of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

from apps.core import figures
from apps.core.plotting import Figure, horizontal_line, layout
from apps.core.plotting.frame import spread

MARGIN = 0.02
ROOF_IN_SIGHT = 1.4  # a roof further away would squeeze everything that was measured into a flat line


@dataclass(frozen=True, slots=True)
class RoundPoint:
    """One round as the plot shows it.

    ``kind`` is ``accepted`` (it became incumbent), ``cannot_tell``, ``slower``, ``refused`` or ``open``;
    ``ratio`` is the measured speed-up over round 0 with its 95 % interval, ``None`` where not timed.
    """

    number: int
    kind: str
    ratio: float | None
    low: float | None
    high: float | None
    word: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A line to compare with: ``kind`` is ``champion``, ``library``, ``autotune`` or ``roof``."""

    kind: str
    label: str
    ratio: float


STYLES = {
    "champion": ("--plot-incumbent", "solid"),
    "library": ("--plot-library", "dash"),
    "autotune": ("--plot-library", "dot"),
    "roof": ("--text-2", "dot"),
}


def incumbent_steps(points: Sequence[RoundPoint]) -> list[tuple[int, float]]:
    """(round, ratio) at which the incumbent changed, in order."""
    return [(point.number, point.ratio) for point in points if point.kind == "accepted" and point.ratio is not None]


def speed_up(
    points: Sequence[RoundPoint],
    references: Sequence[Reference] = (),
    *,
    noise: float | None = None,
    log_axis: bool = False,
    doubtful: Sequence[int] = (),
) -> Figure:
    """Speed-up over round 0 by round: incumbent steps with the margin band, other rounds as marks.

    The band is what cannot be told from the incumbent: max(2 %, 3 x noise) around it. Rounds in ``doubtful`` were
    measured while the device drifted and are shaded.
    """
    steps = incumbent_steps(points)
    last = max((point.number for point in points), default=0)
    margin = max(MARGIN, 3 * (noise or 0.0))
    timed = [point.ratio for point in points if point.ratio is not None] + [1.0]
    timed += [line.ratio for line in references if line.kind != "roof"]
    low, high = min(timed) * 0.96, max(timed) * 1.05
    near = [line for line in references if line.kind != "roof" or line.ratio <= high * ROOF_IN_SIGHT]
    high = max([high, *(line.ratio * 1.03 for line in near)])
    floor = low * (low / high) ** 0.06 if log_axis else low - (high - low) * 0.06
    data: list[Figure] = []
    shapes: list[Figure] = [in_doubt(number) for number in doubtful]
    labels: list[Figure] = []
    if steps:
        data += band(steps, last, margin)
        data.append(incumbent_trace(steps, last))
        labels.append(
            {
                "xref": "paper",
                "x": 1,
                "xanchor": "left",
                "yref": "y",
                "y": steps[-1][1],
                "yanchor": "middle",
                "text": f"incumbent {figures.ratio(steps[-1][1])}",
                "showarrow": False,
                "xshift": 6,
                "font": {"color": "--plot-candidate", "size": 11, "weight": 700},
            }
        )
    for kind, symbol, colour in (
        ("cannot_tell", "circle-open", "--plot-candidate"),
        ("slower", "x-thin-open", "--plot-rejected"),
    ):
        chosen = [point for point in points if point.kind == kind and point.ratio is not None]
        if chosen:
            data.append(marks(chosen, [point.ratio or 0.0 for point in chosen], symbol, colour))
    refused = [point for point in points if point.kind == "refused"]
    if refused:
        data.append(marks(refused, [floor] * len(refused), "triangle-down-open", "--plot-rejected"))
    for line in near:
        shape, label = horizontal_line(line.ratio, f"{line.label} {figures.ratio(line.ratio)}", *STYLES[line.kind])
        shapes.append(shape)
        labels.append(label)
    beyond = [line for line in references if line not in near]
    ends = [floor, high]
    if log_axis:  # positions of labels are then powers of ten, those of shapes and ranges of data are not
        ends = [log10(end) for end in ends]
        for label in labels:
            label["y"] = log10(label["y"])
    spread(labels, (ends[1] - ends[0]) * 0.055)
    ends[1] = headroom(labels, ends[0], ends[1], 0.1 if beyond else 0.02)
    labels += [above(line) for line in beyond]
    x = {
        "title": {"text": "round"},
        "range": [-0.4, max(last, 1) + 0.4],
        "dtick": 1 if last <= 25 else 5,
        "showgrid": False,
    }
    y: Figure = {"ticksuffix": "×", "range": [ends[0] - (ends[1] - ends[0]) * 0.04, ends[1]]}
    if log_axis:
        y |= {"type": "log", "dtick": 1 if ends[1] - ends[0] > 1 else "D1"}
    return {"data": data, "layout": layout(x, y, right=160, shapes=shapes, annotations=labels)}


def headroom(labels: Sequence[Figure], low: float, high: float, share: float) -> float:
    """The upper end of an axis that leaves ``share`` of it free above the highest label, ``high`` at the least."""
    top = max((label["y"] for label in labels), default=low)
    return max(high, low + (top - low) / (1 - share))


def in_doubt(number: int) -> Figure:
    """The shade over a round whose figures are in doubt."""
    return {
        "type": "rect", "xref": "x", "x0": number - 0.5, "x1": number + 0.5, "yref": "paper", "y0": 0, "y1": 1,
        "fillcolor": "--stale-bg", "line": {"width": 0}, "layer": "below",
    }


def above(line: Reference) -> Figure:
    """A roof beyond the plot, as a note at its upper edge."""
    return {
        "xref": "paper",
        "x": 1,
        "xanchor": "left",
        "yref": "paper",
        "y": 1,
        "yanchor": "top",
        "text": f"↑ {line.label} {figures.ratio(line.ratio)}",
        "showarrow": False,
        "xshift": 6,
        "font": {"color": "--text-3", "size": 11},
    }


def band(steps: Sequence[tuple[int, float]], last: int, margin: float) -> list[Figure]:
    """The stretch around the incumbent inside which a round cannot be told from it."""
    x = [number for number, _ in steps] + [last + 0.4]
    level = [ratio for _, ratio in steps] + [steps[-1][1]]
    common = {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "hoverinfo": "skip",
        "line": {"shape": "hv", "width": 0, "color": "--plot-band"},
    }
    return [
        {**common, "y": [ratio * (1 - margin) for ratio in level]},
        {**common, "y": [ratio * (1 + margin) for ratio in level], "fill": "tonexty", "fillcolor": "--plot-band"},
    ]


def incumbent_trace(steps: Sequence[tuple[int, float]], last: int) -> Figure:
    """The solid line of the incumbent with a dot on every round that made it."""
    x = [float(number) for number, _ in steps] + [last + 0.4]
    y = [ratio for _, ratio in steps] + [steps[-1][1]]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": x,
        "y": y,
        "line": {"shape": "hv", "color": "--plot-candidate", "width": 2},
        "marker": {"color": "--plot-candidate", "size": [8] * len(steps) + [0]},
        "text": [f"Round {number}: {figures.ratio(ratio)}, became incumbent" for number, ratio in steps] + [""],
        "hovertemplate": "%{text}<extra></extra>",
    }


def marks(points: Sequence[RoundPoint], y: Sequence[float], symbol: str, colour: str) -> Figure:
    """Rounds that did not become incumbent, with their interval where they were timed."""
    trace: Figure = {
        "type": "scatter",
        "mode": "markers",
        "x": [point.number for point in points],
        "y": list(y),
        "marker": {"symbol": symbol, "size": 9, "color": colour, "line": {"width": 1.6, "color": colour}},
        "text": [f"Round {point.number}: {figures.ratio(point.ratio)}, {point.word}" for point in points],
        "hovertemplate": "%{text}<extra></extra>",
    }
    if all(point.low is not None and point.high is not None and point.ratio is not None for point in points):
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "thickness": 1,
            "width": 3,
            "color": colour,
            "array": [(point.high or 0) - (point.ratio or 0) for point in points],
            "arrayminus": [(point.ratio or 0) - (point.low or 0) for point in points],
        }
    return trace


def comparison(series: Sequence[tuple[str, Sequence[tuple[int, float]]]]) -> Figure:
    """Incumbent over evaluations of several campaigns: one stepped line each, labelled at its end."""
    colours = ("--plot-candidate", "--plot-library", "--plot-incumbent", "--plot-rejected")
    dashes = ("solid", "dash", "dot", "dashdot")
    data: list[Figure] = []
    labels: list[Figure] = []
    last = max((steps[-1][0] for _, steps in series if steps), default=1)
    for place, (given, steps) in enumerate(series):
        if not steps:
            continue
        name = given.replace("<", "‹")  # plotly reads tags in texts
        colour = colours[place % len(colours)]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "x": [float(number) for number, _ in steps] + [float(last)],
                "y": [ratio for _, ratio in steps] + [steps[-1][1]],
                "line": {"shape": "hv", "color": colour, "width": 2, "dash": dashes[place % len(dashes)]},
                "marker": {"color": colour, "size": [7] * len(steps) + [0]},
                "text": [f"{name}, round {number}: {figures.ratio(ratio)}" for number, ratio in steps] + [""],
                "hovertemplate": "%{text}<extra></extra>",
            }
        )
        labels.append(
            {
                "xref": "paper",
                "x": 1,
                "xanchor": "left",
                "yref": "y",
                "y": steps[-1][1],
                "showarrow": False,
                "text": f"{name} {figures.ratio(steps[-1][1])}",
                "font": {"color": colour, "size": 11},
                "xshift": 6,
            }
        )
    if labels:
        levels = [label["y"] for label in labels] + [1.0]
        spread(labels, (max(levels) - min(levels)) * 0.07 or 0.05)
    return {
        "data": data,
        "layout": layout(
            {
                "title": {"text": "round"},
                "showgrid": False,
                "dtick": 1 if last <= 25 else 5,
                "range": [-0.03 * last, last * 1.01],
            },
            {"ticksuffix": "×"},
            right=160,
            annotations=labels,
        ),
    }
