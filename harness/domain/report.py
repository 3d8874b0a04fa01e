"""The report of a whole run: operators x agents x peers on one device, with everything that was measured.

Documents inside it (goals, verdicts, samples) keep their own schemas and are carried as they are. Times are
microseconds, seconds are named so, gains are ratios (> 1 is faster).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from harness.domain.log import LogEntry
from harness.domain.peers import ClockAgreement, Protocol, Row
from harness.domain.prediction import Prediction
from harness.domain.proposal import Hypothesis
from harness.domain.verdict import Environment, Ratio
from harness.domain.vocabulary import Comparison, Outcome, Tier


@dataclass(frozen=True, slots=True)
class ReportShape:
    """One measured shape: bytes and operations of a call as the operator declares them."""

    shape: str
    dims: dict[str, int]
    weight: float
    bytes: int
    flops: int


@dataclass(frozen=True, slots=True)
class ReportKernel:
    """A kernel that boards show: the baseline or an agent's best. ``tier`` is that of the whole change against the
    baseline; ``verdict`` and ``samples`` are documents, null where that measurement was not made."""

    name: str
    digest: str
    agent: str | None = None
    round: int = 0
    tier: Tier | None = None
    verdict: Any = None
    samples: Any = None


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One evaluation of a campaign. ``best`` is the best ratio over the baseline verified so far; seconds count from
    the campaign's start, ``device_seconds`` those of them that the device was held."""

    round: int
    evaluation: int
    kernel: str
    outcome: Outcome
    comparison: Comparison
    versus_baseline: Ratio | None
    best: float | None
    seconds: float
    device_seconds: float
    registers: int | None = None
    shared_bytes: int | None = None
    spill_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class FinalKernel:
    """What a campaign ended with: its best kernel by one fresh paired measurement against the baseline."""

    kernel: str
    round: int
    outcome: Outcome | None
    versus_baseline: Ratio | None
    headline: str


@dataclass(frozen=True, slots=True)
class ReportCampaign:
    """One agent's campaign on one operator with its log; ``device_seconds`` of its ``seconds`` held the device."""

    agent: str
    label: str
    strategy: str | None
    grant: Tier
    status: str
    code: str
    cause: str
    goal: Any
    goal_digest: str
    rounds: int
    evaluations: int
    seconds: float
    device_seconds: float
    hypotheses: tuple[Hypothesis, ...] = ()
    log: tuple[LogEntry, ...] = ()
    steps: tuple[CurvePoint, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    final: FinalKernel | None = None


@dataclass(frozen=True, slots=True)
class BucketBest:
    """The best values that a search found for one shape bucket: how many times faster than the starting kernel they
    were in its last rung, by ``samples`` samples a shape."""

    bucket: str
    params: dict[str, Any]
    ratio: float
    samples: int


@dataclass(frozen=True, slots=True)
class ReportSearch:
    """A bulk search over the baseline's declared values, each shape bucket by itself: ``points`` of the whole ``grid``
    for every bucket, ``configurations`` of all buckets built or ruled out and ``timed``; ``kernel`` is the digest of
    the best ones put together, once the evaluator passed it."""

    strategy: str
    grid: int
    points: int
    configurations: int
    timed: int
    ruled_out: dict[str, int]
    rungs: tuple[int, ...]
    seconds: float
    device_seconds: float
    per_minute: float
    best: tuple[BucketBest, ...] = ()
    kernel: str | None = None


@dataclass(frozen=True, slots=True)
class BestPair:
    """The fastest right library and our fastest kernel on one shape, from the same session; ``ratio`` is the library's
    time over ours."""

    shape: str
    peer: str
    peer_us: float
    kernel: str
    ours_us: float
    ratio: Ratio


@dataclass(frozen=True, slots=True)
class ReportOperator:
    """Everything about one operator. ``sources`` holds every evaluated kernel's text by digest."""

    name: str
    version: str
    title: str
    dtype: str
    shapes: tuple[ReportShape, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)
    kernels: tuple[ReportKernel, ...] = ()
    rows: tuple[Row, ...] = ()
    clocks: tuple[ClockAgreement, ...] = ()
    campaigns: tuple[ReportCampaign, ...] = ()
    best: tuple[BestPair, ...] = ()
    search: ReportSearch | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure to reach: ``kind`` says how ``measured`` is held against ``reach``; ``reached`` is null where nothing
    was measured."""

    operator: str
    shape: str
    kind: Literal["at most us", "at least share", "at least ratio"]
    reach: float
    anchor: str
    measured: float | None
    reached: bool | None
    text: str


@dataclass(frozen=True, slots=True)
class Mean:
    """A geometric mean over so many shapes; ``reach`` is what was asked for, null where nothing was."""

    name: str
    shapes: int
    ratio: float | None
    reach: float | None = None
    reached: bool | None = None


@dataclass(frozen=True, slots=True)
class Seconds:
    """What the run took, and how long of that the device was held."""

    wall: float
    device: float


@dataclass(frozen=True, slots=True)
class Report:
    """The whole run. ``complete`` is false where a budget or a fault cut it; ``missing`` says what, in sentences."""

    began: str
    finished: str | None
    complete: bool
    backend: str
    hardware: str
    workload: str
    environment: Environment
    evaluator: str
    seconds: Seconds
    protocol: Protocol
    missing: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    roofs: dict[str, float] | None = None
    operators: tuple[ReportOperator, ...] = ()
    figures: tuple[Figure, ...] = ()
    means: tuple[Mean, ...] = ()
    version: int = 1
