"""Verdict rows as sheets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from apps.kernels.models import Verdict
from apps.kernels.screens.sheet import Sheet, sheet


def sheet_of(verdict: Verdict | None, *, goal: Mapping[str, Any] | None = None, samples: bool = False) -> Sheet | None:
    """The sheet of a stored verdict; with ``samples`` its raw samples are read too (one more query)."""
    if verdict is None:
        return None
    return sheet(verdict.document, goal=goal, samples=samples_of(verdict) if samples else None)


def samples_of(verdict: Verdict) -> Mapping[str, Any] | None:
    """The raw samples document, ``None`` where nothing was timed."""
    return None if verdict.samples is None else json.loads(bytes(verdict.samples.data))


def over_start(
    overall: Mapping[str, Any] | None, against: Mapping[str, str], start: str | None
) -> Mapping[str, Any] | None:
    """The ratio against the kernel of round 0: measured as the baseline, or against an opponent with its bytes."""
    overall = overall or {}
    if "baseline" in overall:
        return overall["baseline"]
    return next(
        (overall[role] for role, digest in (against or {}).items() if digest == start and role in overall), None
    )


def overall_of(verdict: Verdict | None) -> Mapping[str, Any]:
    """All overall ratios of a verdict by role."""
    return ((verdict.document.get("timing") or {}).get("overall") or {}) if verdict else {}


def over(document: Mapping[str, Any] | None, role: str) -> Mapping[str, Any] | None:
    """The overall ratio of a verdict document against ``role``."""
    if not document or not document.get("timing"):
        return None
    return document["timing"].get("overall", {}).get(role)
