"""What the evaluator is asked: one candidate, what it stands against, and the conditions."""

from __future__ import annotations

from dataclasses import dataclass

from harness.domain.goal import Goal
from harness.domain.vocabulary import Backend, Evidence, Purpose, Role, Tier


@dataclass(frozen=True, slots=True)
class OperatorRef:
    """An operator by name and version."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class SourceRef:
    """A kernel: its digest and its text; the digest is recomputed on arrival."""

    digest: str
    source: str


@dataclass(frozen=True, slots=True)
class Opponent:
    """A kernel the candidate is measured against in the same run."""

    role: Role
    digest: str
    source: str


@dataclass(frozen=True, slots=True)
class Required:
    """The least isolation level (0 to 3) and evidence a verdict must carry to be of use."""

    isolation: int = 2
    evidence: Evidence = Evidence.BOUNDED


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """The document given to ``python -m harness evaluate --request``.

    ``deadline_s`` bounds the whole evaluation in seconds. ``nonce`` is echoed in no verdict; it makes
    two requests for the same job distinguishable in logs. ``against`` may be empty (baseline run).
    ``sanitize`` asks for the sanitizer tier, which a promotion on a GPU has anyway; ``profile`` for a profile of the
    candidate once it was timed on a GPU (in a round only where it is faster than the incumbent).
    """

    job: str
    nonce: str
    purpose: Purpose
    operator: OperatorRef
    backend: Backend
    hardware: str
    workload: str
    goal: Goal
    candidate: SourceRef
    against: tuple[Opponent, ...] = ()
    grant: Tier = Tier.HEAVY
    required: Required = Required()
    deadline_s: float = 120.0
    sanitize: bool = False
    profile: bool = False
    version: int = 1
