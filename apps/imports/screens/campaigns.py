"""Campaigns of an imported report as rows: what agents predicted, measured, and reached with which effort. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from statistics import median
from typing import Any

Document = Mapping[str, Any]
AXES = {"evaluations": ("evaluation", "evaluations"), "device": ("device_seconds", "seconds the device was held"),
        "time": ("seconds", "seconds since the start")}


@dataclass(frozen=True, slots=True)
class Curve:
    """The best ratio over the baseline so far, by the effort spent."""

    agent: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class CampaignSheet:
    """A campaign's facts, predictions and log; ``miss`` is the median factor between predicted and measured times."""

    document: Document
    curve: Curve
    predictions: tuple[Document, ...]
    compared: int
    miss: float | None
    optimistic: int


def curve(campaign: Document, axis: str) -> Curve:
    """Points at which the best ratio is known, by evaluations or seconds."""
    key = AXES.get(axis, AXES["evaluations"])[0]
    points = [(float(step[key]), float(step["best"])) for step in campaign["steps"] if step["best"] is not None]
    return Curve(campaign["agent"], tuple(points))


def sheets(document: Document, axis: str) -> list[CampaignSheet]:
    """Every campaign of an operator."""
    found = []
    for campaign in document["campaigns"]:
        told = campaign["predictions"]
        errors = [one["error"] for one in told if one.get("error") is not None]
        found.append(CampaignSheet(campaign, curve(campaign, axis), tuple(told), len(errors),
                                   exp(median(abs(error) for error in errors)) if errors else None,
                                   sum(error < 0 for error in errors)))
    return found
