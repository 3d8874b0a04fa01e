"""Frozen baselines of the devices: readings, plot, drifts."""

from __future__ import annotations

from typing import Any

from apps.campaigns.canary import drift
from apps.campaigns.canary.models import CanaryBase, CanaryDrift, CanaryReading
from apps.campaigns.canary.plot import Point, canary_plot
from apps.campaigns.canary.readings import figures_of, reference_of
from apps.campaigns.canary.selectors import Window, bases, readings_of
from apps.core import figures

LISTED = 8
REFUSED_MARGIN = drift.LEAST_MARGIN


def canary_rows() -> list[dict[str, Any]]:
    """A row per base that watches a device now."""
    return [row_of(base) for base in bases()]


def row_of(base: CanaryBase) -> dict[str, Any]:
    """A base with its readings of the present shapes in the present environment class, against their reference."""
    readings = readings_of(base)
    here = readings[-1].environment_class if readings else ""
    readings = [reading for reading in readings if reading.environment_class == here]
    shapes: dict[str, Any] = next((reading.medians for reading in reversed(readings) if reading.medians), {})
    readings = [reading for reading in readings if not reading.medians or reading.medians.keys() == shapes.keys()]
    reference = reference_of(base, here, shapes) if here else None
    points = [point_of(reading, reference) for reading in readings]
    drifts = list(CanaryDrift.objects.filter(base=base).order_by("-id")[:LISTED])
    windows = [Window(row.since, row.ended_at) for row in drifts]
    return {
        "base": base, "environment_class": here, "count": len(readings),
        "missing": max(0, drift.REFERENCE_READINGS - sum(reading.noise is not None for reading in readings)),
        "plot": canary_plot(points, windows) if reference is not None else None,
        "readings": list(zip(readings[-LISTED:], points[-LISTED:], strict=True))[::-1],
        "drift": next((row for row in drifts if row.ended_at is None), None),
        "past": [row for row in drifts if row.ended_at is not None],
    }


def point_of(reading: CanaryReading, reference: drift.Figures | None) -> Point:
    """A reading on the plot; those of the reference itself are judged by it too."""
    when = f"{reading.at:%d %b %H:%M}"
    if reference is None or not reading.medians:
        said = "no reference yet" if reading.medians else f"refused: {reading.outcome.replace('_', ' ')}"
        return Point(reading.at, None, REFUSED_MARGIN, reading.side or 0, f"{when}: {said}")
    found = drift.judge(figures_of(reading), reference)
    side = found.side if reading.side is None else reading.side
    text = f"{when}: {figures.ratio(found.shift)} of the reference, margin ±{figures.percent(found.margin)}"
    return Point(reading.at, found.shift, found.margin, side, text)
