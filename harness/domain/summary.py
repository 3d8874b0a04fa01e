"""What the engine and the agents keep of a verdict: a small, JSON-serialisable extract.

The verdict itself stays where it was stored; the summary holds exactly what decides the next step
and what an agent may read. Times are microseconds, gains are ratios (> 1 is faster).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.domain.plan import LaunchResources
from harness.domain.profile import CounterProfile
from harness.domain.verdict import Ratio, Reason, TierReason, Verdict
from harness.domain.vocabulary import Blame, Comparison, Outcome, Role, Stage, Tier, blame_of


@dataclass(frozen=True, slots=True)
class ShapeSummary:
    """Steady-state figures of one shape: median in microseconds, bandwidth in GB/s, roof share as a fraction."""

    shape: str
    weight: float
    median_us: float
    gbps: float | None = None
    roof_share: float | None = None
    first_call_us: float | None = None


@dataclass(frozen=True, slots=True)
class VerdictSummary:
    """Outcome, comparison and figures of one verdict.

    ``overall`` maps a role (``incumbent``, ``baseline``, ``champion``) to the measured ratio;
    it is empty where nothing was timed. ``worst_ratio`` is the largest error as a share of its bound.
    """

    kernel: str
    outcome: Outcome
    stage: Stage
    comparison: Comparison = Comparison.NONE
    step_tier: Tier | None = None
    tier_reasons: tuple[TierReason, ...] = ()
    reasons: tuple[Reason, ...] = ()
    timed: bool = False
    noise: float | None = None
    overall: dict[str, Ratio] = field(default_factory=dict)
    shapes: tuple[ShapeSummary, ...] = ()
    regressions: tuple[str, ...] = ()
    suspicious: tuple[str, ...] = ()
    score: float | None = None
    scratch_bytes: int | None = None
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    worst_ratio: float | None = None
    occupancy: float | None = None
    limiter: str | None = None  # of the launch with the least occupancy
    counters: CounterProfile | None = None  # where the evaluation profiled it

    @property
    def passed(self) -> bool:
        """Whether the candidate is right and within limits."""
        return self.outcome is Outcome.PASSED

    @property
    def blame(self) -> Blame | None:
        """Whom the outcome is charged to."""
        return blame_of(self.outcome)

    @property
    def conclusive(self) -> bool:
        """R15: passed and timed, whatever the comparison says."""
        return self.passed and self.timed and self.comparison is not Comparison.NONE

    @property
    def faster(self) -> bool:
        """Whether the whole interval lies beyond the margin."""
        return self.passed and self.comparison is Comparison.FASTER

    def ratio(self, role: Role) -> Ratio | None:
        """The measured ratio against ``role``, or ``None`` where that side was not measured."""
        return self.overall.get(str(role))

    @property
    def roof_share(self) -> float | None:
        """The smallest roof share over the shapes: the roof is reached only where every shape reached it."""
        shares = [shape.roof_share for shape in self.shapes if shape.roof_share is not None]
        return min(shares) if shares and len(shares) == len(self.shapes) else None


def summary_of(verdict: Verdict) -> VerdictSummary:
    """Extract what decides the next step from a full verdict."""
    timing = verdict.timing
    launches = verdict.resources.launches
    ratios = [case.worst_ratio for case in verdict.correctness.cases if case.worst_ratio is not None]
    tier = verdict.step_tier
    return VerdictSummary(
        kernel=verdict.kernel,
        outcome=verdict.outcome,
        stage=verdict.stage,
        comparison=verdict.comparison,
        step_tier=tier.tier if tier else None,
        tier_reasons=tier.why if tier else (),
        reasons=verdict.reasons,
        timed=timing is not None,
        noise=timing.noise if timing else None,
        overall=dict(timing.overall) if timing else {},
        shapes=tuple(
            ShapeSummary(s.shape, s.weight, s.median_us, s.gbps, s.roof_share, s.first_call_us) for s in timing.shapes
        ) if timing else (),
        regressions=verdict.regressions,
        suspicious=verdict.suspicious,
        score=verdict.score,
        scratch_bytes=verdict.resources.scratch_bytes,
        registers=_largest(launch.registers for launch in launches),
        spill_bytes=_largest(launch.spill_bytes for launch in launches),
        shared_bytes=_largest(launch.shared_bytes for launch in launches),
        worst_ratio=max(ratios) if ratios else None,
        occupancy=verdict.resources.occupancy,
        limiter=_limiter(launches),
        counters=verdict.profile,
    )


def _limiter(launches: Iterable[LaunchResources]) -> str | None:
    known = [launch for launch in launches if launch.occupancy is not None]
    return min(known, key=lambda launch: launch.occupancy or 0.0).limiter if known else None


def _largest(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None
