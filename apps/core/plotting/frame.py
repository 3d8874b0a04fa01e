"""What all figures share: the layout, lines labelled at their end, and their JSON for an attribute."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

Figure = dict[str, Any]


def layout(x: Figure, y: Figure, *, right: int = 130, **more: Any) -> Figure:
    """A calm layout with room at the right for the labels of lines; no legend, the page has its own."""
    return {
        "margin": {"l": 48, "r": right, "t": 8, "b": 44},
        "showlegend": False,
        "hovermode": "closest",
        "xaxis": {"zeroline": False, **x},
        "yaxis": {"zeroline": False, **y},
        **more,
    }


def horizontal_line(value: float, text: str, colour: str, dash: str = "solid") -> tuple[Figure, Figure]:
    """A line over the whole width as a shape, and its label at the right end as an annotation."""
    shape = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": "y",
        "y0": value,
        "y1": value,
        "line": {"color": colour, "width": 1.5, "dash": dash},
    }
    label = {
        "xref": "paper",
        "x": 1,
        "xanchor": "left",
        "yref": "y",
        "y": value,
        "yanchor": "middle",
        "text": text,
        "showarrow": False,
        "font": {"color": colour, "size": 11},
        "xshift": 6,
    }
    return shape, label


def spread(labels: list[Figure], gap: float) -> None:
    """Move labels apart vertically until neighbours are ``gap`` (in data units) from each other, in place."""
    ordered = sorted(labels, key=lambda label: label["y"])
    for below, above in pairwise(ordered):
        if above["y"] - below["y"] < gap:
            above["y"] = below["y"] + gap


def to_json(figure: Figure) -> str:
    """JSON for the attribute ``data-figure``; the template escapes it like any text."""
    return json.dumps(figure, allow_nan=False, separators=(",", ":"))
