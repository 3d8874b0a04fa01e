"""The evaluator's result for one kernel. A verdict is never edited."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.domain.plan import LaunchResources
from harness.domain.profile import CounterProfile
from harness.domain.request import OperatorRef
from harness.domain.vocabulary import (
    Backend,
    Blame,
    Comparison,
    Evidence,
    Outcome,
    Stage,
    Tier,
    blame_of,
)
from harness.domain.words import REASON_KEPT, one_line


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a stage refused or flagged: ``text`` serves a person and an agent alike, with numbers.

    ``code`` names the troubleshooting entry. ``index`` is the position of the worst element in the
    output, ``got``/``expected``/``bound`` its values (absolute error bound).
    """

    code: str
    stage: Stage
    text: str
    line: int | None = None
    case: str | None = None
    index: tuple[int, ...] | None = None
    got: float | str | None = None
    expected: float | str | None = None
    bound: float | None = None

    def __post_init__(self) -> None:
        """Whatever stage built it, and out of whatever words: a reason can be written, and is one readable line."""
        for name, kept in (("code", 80), ("text", REASON_KEPT), ("case", 200), ("got", 200), ("expected", 200)):
            said = getattr(self, name)
            if isinstance(said, str):
                object.__setattr__(self, name, one_line(said, kept))


@dataclass(frozen=True, slots=True)
class TierReason:
    """One cause of a tier, pinned to a line of the newer source; ``text`` is cleaned like a ``Reason``'s."""

    line: int | None
    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", one_line(self.text))


@dataclass(frozen=True, slots=True)
class TierResult:
    """The tier of a change with its causes."""

    tier: Tier
    why: tuple[TierReason, ...] = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """What was allowed where a case came closest to its bound, or farthest beyond it.

    ``error`` is the candidate's absolute error at ``index`` of ``output``, ``absolute`` the bound there. The other
    figures are relative to ``scale``, the operator on absolute values: ``relative`` is the bound, ``honest`` a multiple
    of what an honest implementation in the same dtype errs by, ``rounding`` what sums in any order and the final
    rounding may add up to, ``cap`` the ceiling for dtype and operator. The larger of ``honest`` and ``rounding``
    applies, never more than ``cap``; ``binding`` names the one that did (``override``: the goal's own tolerance).
    """

    output: str
    index: tuple[int, ...]
    error: float
    absolute: float
    relative: float
    scale: float
    honest: float
    rounding: float
    cap: float
    binding: str
    reason: str


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One correctness case. ``worst_ratio`` is the largest error as a share of its bound;
    errors are absolute maxima against float64 of candidate, baseline and library."""

    name: str
    regime: str
    dtype: str
    passed: bool
    worst_ratio: float | None
    error: float | None = None
    baseline_error: float | None = None
    library_error: float | None = None
    bound: Bound | None = None  # None in older documents, and where no finite element was compared


@dataclass(frozen=True, slots=True)
class Correctness:
    """All correctness cases that ran."""

    cases: tuple[CaseResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Resources:
    """Device resources; bytes. ``launches`` is empty for numba. ``peak_bytes`` is what a call needs in all:
    ``argument_bytes`` and ``scratch_bytes``; ``occupancy`` the least of its launches."""

    launches: tuple[LaunchResources, ...] = ()
    scratch_bytes: int | None = None
    peak_bytes: int | None = None
    occupancy: float | None = None
    argument_bytes: int | None = None  # None in older documents


@dataclass(frozen=True, slots=True)
class Ratio:
    """Time of the other / time of the candidate (> 1 is faster) with its 95 % interval."""

    ratio: float
    low: float
    high: float
    rounds_won: int | None = None


@dataclass(frozen=True, slots=True)
class ShapeTiming:
    """Measured times of one shape in microseconds, bandwidth in GB/s, ``cv`` and ``roof_share`` as fractions.

    ``host_us``: from a native call of ``run`` to the end of its last kernel, host code included; ``None`` where no
    native run was made. ``copy_share``, ``read_share`` and ``matmul_share``: the achieved rate as a share of the
    measured roof of that name; ``roof_share`` is what the binding one leaves."""

    shape: str
    weight: float
    median_us: float
    p10: float
    p90: float
    cv: float
    cold_us: float | None = None
    hot_us: float | None = None
    first_call_us: float | None = None
    gbps: float | None = None
    tflops: float | None = None
    roof_share: float | None = None
    versus: dict[str, Ratio] = field(default_factory=dict)
    host_us: float | None = None
    copy_share: float | None = None
    read_share: float | None = None
    matmul_share: float | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Timing of the recheck rounds, the only figures shown. ``noise`` is the A/A half-width, a fraction."""

    evidence: Evidence
    noise: float
    rounds: int
    shapes: tuple[ShapeTiming, ...]
    overall: dict[str, Ratio] = field(default_factory=dict)
    pairs: int | None = None  # timed pairs per round and shape
    longer: bool = False  # whether the one longer measurement was spent


@dataclass(frozen=True, slots=True)
class Isolation:
    """The proved isolation level (0 to 3) and the walls that the escape probe found standing."""

    level: int
    proved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Which evaluator judged, and behind which walls."""

    version: str
    isolation: Isolation


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a verdict was made. ``class_`` is the environment class; different classes are never ranked together."""

    class_: str
    cpu: str | None
    gpu: str | None
    driver: str | None
    python: str
    packages: dict[str, str] = field(default_factory=dict)
    clocks: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome and comparison with reasons, metrics and environment.

    Invariants, checked here: timing only where the outcome is ``passed``; a comparison other than
    ``none`` only where something was timed; blame follows the outcome.
    """

    kernel: str
    operator: OperatorRef
    backend: Backend
    hardware: str
    target: str | None
    environment: Environment
    evaluator: Evaluator
    outcome: Outcome
    stage: Stage
    blame: Blame | None
    reasons: tuple[Reason, ...] = ()
    notes: tuple[Reason, ...] = ()  # findings that refuse nothing: look and note
    step_tier: TierResult | None = None
    correctness: Correctness = Correctness()
    resources: Resources = Resources()
    timing: Timing | None = None
    comparison: Comparison = Comparison.NONE
    compared_with: str | None = None  # the role that ``comparison`` refers to
    regressions: tuple[str, ...] = ()
    score: float | None = None
    suspicious: tuple[str, ...] = ()
    seed: str | None = None
    stages: dict[str, float] = field(default_factory=dict)
    samples: str | None = None
    profile: CounterProfile | None = None  # where the request asked for one
    version: int = 1

    def __post_init__(self) -> None:
        if self.timing is not None and self.outcome is not Outcome.PASSED:
            raise ValueError(f"a verdict with outcome {self.outcome} cannot carry timing")
        if self.timing is None and self.comparison is not Comparison.NONE:
            raise ValueError("a comparison needs timing")
        if self.blame != blame_of(self.outcome):
            raise ValueError(f"blame {self.blame} does not follow from outcome {self.outcome}")

    @property
    def passed(self) -> bool:
        """Whether the candidate is right and within limits."""
        return self.outcome is Outcome.PASSED
