"""What a profiler (or, without one, the launcher's own clock) says of a kernel, shape by shape.

Part of a verdict. Shares are fractions of one, times microseconds, rates GB/s; ``None`` is what was not measured.
Sentences are made where the figures are, so that agents and pages say the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ProfileSource(StrEnum):
    """Where the figures come from: hardware counters, or device events beside what the compiler says."""

    COUNTERS = "nsight-compute"
    CLOCK = "launcher clock"


class Bottleneck(StrEnum):
    """What holds a launch back: device memory, the caches, arithmetic, or waiting with none of them busy."""

    MEMORY = "memory"
    CACHE = "cache"
    COMPUTE = "compute"
    LATENCY = "latency"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stall:
    """Why warps wait: ``reason`` as the profiler names it, ``share`` of the time between two instructions of a warp,
    ``text`` in words."""

    reason: str
    share: float
    text: str


@dataclass(frozen=True, slots=True)
class LaunchCounters:
    """One launch. ``threads`` per block; ``registers`` per thread, ``shared_bytes`` per block.

    ``dram_share``, ``sm_share`` (instruction issue or the busiest unit of a multiprocessor), ``tensor_share`` (matrix
    units) and ``l2_share`` are shares of the device's peaks; ``l2_hit`` is the share of requests that the L2 answers.
    ``occupancy`` is what resources allow, ``occupancy_achieved`` what was active on average, ``limiter`` the resource
    that limits it (``registers``, ``shared memory``, ``warps``, ``blocks``). ``waves``: blocks over those that the
    device holds at once. ``bank_conflicts``: extra passes over shared memory as a share of all. ``stalls`` are the
    largest first.
    """

    function: str
    grid: tuple[int, int, int]
    threads: int
    bound: Bottleneck
    text: str
    us: float | None = None
    dram_gbps: float | None = None
    dram_share: float | None = None
    sm_share: float | None = None
    tensor_share: float | None = None
    l2_share: float | None = None
    l2_hit: float | None = None
    occupancy: float | None = None
    occupancy_achieved: float | None = None
    limiter: str | None = None
    waves: float | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    spill_bytes: int | None = None
    bank_conflicts: float | None = None
    stalls: tuple[Stall, ...] = ()


@dataclass(frozen=True, slots=True)
class ShapeCounters:
    """One measured shape: all launches of a call in order. ``us`` is their sum under the profiler, which flushes the
    caches before each launch, or the cold time by the launcher's clock; ``bound`` that of the longest launch."""

    shape: str
    bound: Bottleneck
    text: str
    us: float | None = None
    launches: tuple[LaunchCounters, ...] = ()


@dataclass(frozen=True, slots=True)
class CounterProfile:
    """A kernel's profile. ``tool`` names the profiler and its version; ``why`` says why there are no counters, where
    there are none; ``seconds`` is what it cost, which the candidate is not charged."""

    source: ProfileSource
    shapes: tuple[ShapeCounters, ...]
    tool: str | None = None
    why: str | None = None
    seconds: float | None = None
    version: int = 1
