"""How rows of a board are ordered: by score, within one environment class, with doubt shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

NOISE_LIMIT = 0.10  # above it a figure is shown and not ranked


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One kernel of one team. Identifiers are ``None`` for other teams' rows: names and figures only.

    ``ratio``, ``low``, ``high`` are against the operator's baseline; ``why_unranked`` says why ``rank`` is ``None``;
    ``tied``: its interval overlaps that of the row above, so the order of the two cannot be told.
    """

    team: str
    own: bool
    label: str
    approval: str  # "champion", "approved", "waiting for review", "not reviewed", "quarantined", ...
    tier: str
    score: float | None
    ratio: float | None
    low: float | None
    high: float | None
    noise: float | None
    evaluator_version: str
    measured_at: datetime | None
    suspicious: bool = False
    foreign: bool = False
    evidence: str = ""  # how well the time is supported
    kernel: str | None = None
    verdict: int | None = None
    campaign: int | None = None
    rank: int | None = None
    tied: bool = False
    why_unranked: str = ""
    drifted: bool = False  # measured while the device drifted: the figure is in doubt
    reverifying: bool = False  # a champion that a new evaluator or environment class verifies again
    library: bool = False  # a reference row, not a team's
    roof: float | None = None  # weighted share of the measured roof
    medians_us: tuple[tuple[str, float], ...] = ()  # by shape, in a session of its own


def ranked(rows: Iterable[BoardRow]) -> list[BoardRow]:
    """Ranked rows first, best score on top; below them the unranked ones with their reasons."""
    judged = [replace(row, why_unranked=row.why_unranked or _why_unranked(row)) for row in rows]
    able = sorted((row for row in judged if not row.why_unranked), key=lambda row: -(row.score or 0.0))
    placed: list[BoardRow] = []
    for position, row in enumerate(able, start=1):
        above = placed[-1] if placed else None
        tied = above is not None and row.high is not None and above.low is not None and row.high >= above.low
        placed.append(replace(row, rank=position, tied=tied))
    rest = sorted((row for row in judged if row.why_unranked), key=lambda row: (row.why_unranked, row.team, row.label))
    return placed + rest


def with_libraries(rows: list[BoardRow], references: Iterable[BoardRow]) -> list[BoardRow]:
    """Libraries as rows without a place, each above the first row that is slower; those without a figure last."""
    shown = list(rows)
    for one in sorted(references, key=lambda row: row.ratio or 0.0):
        places = [place for place, row in enumerate(shown)
                  if row.rank is None or (one.ratio is not None and (row.ratio or 0.0) < one.ratio)]
        shown.insert(places[0] if places and one.ratio is not None else len(shown), one)
    return shown


def _why_unranked(row: BoardRow) -> str:
    if row.foreign:
        return "measured elsewhere and imported"
    if row.evidence == "claimed":
        return "the time is only what the kernel's own process reported"
    if row.approval == "quarantined":
        return "quarantined"
    if row.score is None or row.ratio is None:
        return "not timed"
    if row.noise is not None and row.noise > NOISE_LIMIT:
        return f"noise {row.noise:.0%} is over {NOISE_LIMIT:.0%}"
    if row.suspicious and row.approval not in ("champion", "approved"):
        return "suspicious win that no reviewer has looked at"
    return ""
