"""Campaigns of an imported report as rows: what agents predicted, measured, and reached with which effort. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.bridge import api

Document = Mapping[str, Any]
SHOWN = 60
AXES = {"evaluations": ("evaluation", "evaluations"), "device": ("device_seconds", "seconds the device was held"),
        "time": ("seconds", "seconds since the start")}


@dataclass(frozen=True, slots=True)
class Curve:
    """The best ratio over the baseline so far, by the effort spent."""

    agent: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class CampaignSheet:
    """A campaign's document, its curve, and its predictions against what was measured, reckoned from the log."""

    document: Document
    curve: Curve
    predicted: api.Predicted | None

    @property
    def log(self) -> list[Document]:
        """The entries that a page shows: all of them, or of a search's hundreds the first and every improvement."""
        entries: list[Document] = list(self.document["log"])
        return entries if len(entries) <= SHOWN else [
            *entries[:SHOWN], *(one for one in entries[SHOWN:] if one["conclusion"] == "confirmed")]


def curve(campaign: Document, axis: str) -> Curve:
    """Where the best ratio rose, by evaluations or seconds, and where the campaign ended: a step line needs no more."""
    key = AXES.get(axis, AXES["evaluations"])[0]
    points: list[tuple[float, float]] = []
    for step in campaign["steps"]:
        if step["best"] is not None and (not points or step["best"] > points[-1][1]):
            points.append((float(step[key]), float(step["best"])))
    if points and float(campaign["steps"][-1][key]) > points[-1][0]:
        points.append((float(campaign["steps"][-1][key]), points[-1][1]))
    return Curve(campaign["agent"], tuple(points))


def sheets(document: Document, axis: str) -> list[CampaignSheet]:
    """Every campaign of an operator. An agent that states no predictions has none."""
    found = []
    for campaign in document["campaigns"]:
        told = api.predicted(campaign["log"]) if campaign["predictions"] else None
        found.append(CampaignSheet(campaign, curve(campaign, axis), told if told and told.rows else None))
    return found
