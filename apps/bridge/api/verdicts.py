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
    """What the raw samples say, computed here. ``overall`` maps roles to ``(ratio, low, high)``;
    ``evidence_complete``: enough process rounds per side, and an A/A control of every shape."""

    comparison: str
    regressions: tuple[str, ...]
    overall: dict[str, tuple[float, float, float]]
    noise: float
    evidence_complete: bool


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


LEAST_ROUNDS = 5
"""Fewer process rounds per side are no evidence for a promotion (DESIGN section 6)."""
ROUNDING = 1e-3
"""How far a ratio in a document may lie from the recomputed one: documents round for display."""


def recompute(document: dict[str, Any], samples_document: Any) -> Recomputed:
    """The comparison of a verdict, computed anew from the raw samples it names.

    Takes about a second of processor time; never call it inside a transaction.

    Raises:
        BridgeError: the samples are malformed, miss a side that the verdict compares, or give other ratios.
    """
    with translated():
        from harness.domain.codec import from_document
        from harness.domain.errors import DocumentError
        from harness.domain.samples import Samples
        from harness.domain.vocabulary import Comparison
        from harness.evaluation.timing.comparison import compare, noise_of

        samples = from_document(samples_document, Samples)
        timing = document.get("timing")
        role = document.get("compared_with")
        if timing is None:
            raise DocumentError("The verdict names raw samples but carries no timing.", key="timing")
        claimed = timing.get("overall", {})
        if not role:  # a baseline run: timed, compared with nothing
            if claimed:
                raise DocumentError("The verdict shows ratios but names no side it was compared with.",
                                    key="compared_with")
            return Recomputed(str(Comparison.NONE), (), {}, noise_of(samples), evidence_complete=False)
        overall: dict[str, tuple[float, float, float]] = {}
        try:
            result = compare(samples, role)
            sides = {role: result.overall} | {
                side: compare(samples, side).overall for side in claimed if side != role
            }
        except (ValueError, ZeroDivisionError) as error:
            raise DocumentError(f"The raw samples do not support the verdict: {error}.", key="samples") from error
        for side, ratio in sides.items():
            overall[side] = (ratio.ratio, ratio.low, ratio.high)
            stated = claimed.get(side) or {}
            if any(abs(float(stated.get(key, -1.0)) - value) > ROUNDING * value
                   for key, value in zip(("ratio", "low", "high"), overall[side], strict=True)):
                raise DocumentError(f"The ratios against {side} are not those of the raw samples.",
                                    key="timing.overall", code="verdict_forged")
        controlled = bool(samples.shapes) and all(shape.aa for shape in samples.shapes)
        return Recomputed(str(result.comparison), result.regressions, overall, result.noise,
                          evidence_complete=controlled and result.rounds >= LEAST_ROUNDS)
