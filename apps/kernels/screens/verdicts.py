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


def over(document: Mapping[str, Any] | None, role: str) -> Mapping[str, Any] | None:
    """The overall ratio of a verdict document against ``role``."""
    if not document or not document.get("timing"):
        return None
    return document["timing"].get("overall", {}).get(role)
