"""Verdict documents: validated at the door, and their comparison recomputed from raw samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.bridge.api.errors import translated


@dataclass(frozen=True, slots=True)
class VerdictFacts:
    """What the web side copies from a verdict into columns, and what the gate asks about."""

    kernel: str
    operator: str
    operator_version: str
    backend: str
    hardware: str
    environment_class: str
    evaluator_version: str
    isolation: int
    outcome: str
    comparison: str
    compared_with: str
    evidence: str
    score: float | None
    noise: float | None
    regressions: tuple[str, ...]
    suspicious: tuple[str, ...]
    samples: str | None
    timed: bool


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What the raw samples say, computed here. ``overall`` maps roles to ``(ratio, low, high)``."""

    comparison: str
    regressions: tuple[str, ...]
    overall: dict[str, tuple[float, float, float]]
    noise: float


def verdict_check(document: Any) -> VerdictFacts:
    """Check a verdict document against its schema and its own invariants.

    Raises:
        BridgeError: with the key of the first wrong value.
    """
    with translated():
        from harness.domain.codec import check_schema, from_document
        from harness.domain.verdict import Verdict

        check_schema(document, "verdict")
        verdict = from_document(document, Verdict)
        timing = verdict.timing
        return VerdictFacts(
            kernel=verdict.kernel, operator=verdict.operator.name, operator_version=verdict.operator.version,
            backend=str(verdict.backend), hardware=verdict.hardware, environment_class=verdict.environment.class_,
            evaluator_version=verdict.evaluator.version, isolation=verdict.evaluator.isolation.level,
            outcome=str(verdict.outcome), comparison=str(verdict.comparison), compared_with=verdict.compared_with or "",
            evidence=str(timing.evidence) if timing else "", score=verdict.score,
            noise=timing.noise if timing else None, regressions=verdict.regressions, suspicious=verdict.suspicious,
            samples=verdict.samples, timed=timing is not None,
        )
