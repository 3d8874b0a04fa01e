"""Library peers: what eager PyTorch, torch.compile, Liger, cuDNN and cuBLAS take for an operator, measured beside ours.

A peer that is not here has a row with the reason in ``absent`` and no figure. Times are microseconds per call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from harness.domain.verdict import Environment, Ratio


class Side(StrEnum):
    """Whose time a row holds: a library's, a kernel of ours by its launch plan, or the same kernel called natively in
    the libraries' process (the control that both clocks agree)."""

    PEER = "peer"
    OURS = "ours"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel or library call on one shape.

    ``n`` samples in ``round_us`` rounds (the median of each); ``cv`` is the robust coefficient of variation within a
    round. ``error`` is the largest absolute error against float64 on one block of rows of a timed call, ``worst_ratio``
    the largest error as a share of the evaluator's bound, ``right`` whether it lies within it (one rounding to the
    library's own output dtype allowed). ``graph``: captured in a CUDA graph; false: called from the host, whose launch
    cost may then be part of the figure. ``detail`` says how the library was asked, ``absent`` why there is no figure.
    """

    operator: str
    shape: str
    dtype: str
    side: Side
    name: str
    kernel: str | None = None
    version: str | None = None
    median_us: float | None = None
    p10: float | None = None
    p90: float | None = None
    cv: float | None = None
    n: int = 0
    round_us: tuple[float, ...] = ()
    gbps: float | None = None
    tflops: float | None = None
    roof_share: float | None = None
    error: float | None = None
    worst_ratio: float | None = None
    right: bool | None = None
    graph: bool | None = None
    detail: str = ""
    absent: str | None = None

    @property
    def timed(self) -> bool:
        """Whether there is a figure."""
        return self.median_us is not None


@dataclass(frozen=True, slots=True)
class ClockAgreement:
    """One kernel of ours by both clocks, in the same rounds: ``ratio`` is native / launch plan with its interval."""

    operator: str
    shape: str
    kernel: str
    native_us: float
    plan_us: float
    ratio: Ratio


@dataclass(frozen=True, slots=True)
class Protocol:
    """How the figures were taken; ``rounds`` with fresh buffers, ``pairs`` samples a round, in words for a reader."""

    rounds: int
    pairs: int
    text: str


@dataclass(frozen=True, slots=True)
class Peers:
    """Everything one session measured of libraries, for one environment class. ``versions`` of what was asked."""

    backend: str
    hardware: str
    workload: str
    environment: Environment
    evaluator: str
    began: str
    seconds: float
    protocol: Protocol
    versions: dict[str, str] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    clocks: tuple[ClockAgreement, ...] = ()
    version: int = 1


def best_peers(rows: Iterable[Row]) -> dict[tuple[str, str], Row]:
    """The fastest right library of every (operator, shape) that has one: what "best library" means in every rule."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row.side is not Side.PEER or row.median_us is None or row.right is False:
            continue
        known = best.get((row.operator, row.shape))
        if known is None or known.median_us is None or row.median_us < known.median_us:
            best[row.operator, row.shape] = row
    return best
