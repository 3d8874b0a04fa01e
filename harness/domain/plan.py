"""Launch plans: what a Triton candidate would launch, as data (TTIR text, never binaries)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PlanBuffer:
    """One allocation. ``bytes`` and ``align`` in bytes, ``strides`` in elements; kinds never alias. The array of
    ``shape`` and ``strides`` starts ``offset`` bytes into it (an argument's shift from an aligned address)."""

    id: int
    kind: str  # input | output | scratch | global_scratch
    bytes: int
    align: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A construct that cannot be recorded, with the line of the candidate where it stands."""

    code: str
    text: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """Ordered steps over buffers, recorded twice and equal (``second_call``: ``same``).

    A step is ``{"fill": {...}}`` or ``{"launch": {...}}`` as in CONTRACTS section 1; ``irs`` maps the
    digests named by launches to IR text.
    """

    target: str
    compiler: str
    second_call: str
    buffers: tuple[PlanBuffer, ...]
    steps: tuple[dict[str, Any], ...]
    refusals: tuple[Refusal, ...] = ()
    irs: dict[str, str] | None = None
    version: int = 1


@dataclass(frozen=True, slots=True)
class LaunchResources:
    """Resources of one recorded launch: registers per thread, bytes of shared memory and spills, warps per program.
    ``limiter`` is what keeps ``occupancy`` where it is: registers, shared memory, warps or blocks."""

    function: str
    grid: tuple[int, int, int]
    num_warps: int
    num_ctas: int
    registers: int | None
    spill_bytes: int | None
    stack_bytes: int | None
    shared_bytes: int | None
    occupancy: float | None = None
    binary: str | None = None  # digest of the compiled code
    limiter: str | None = None  # None in older documents


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """What the clean compile process adds to a plan."""

    plan: str  # digest of the plan document
    target: str
    compiler: str
    launches: tuple[LaunchResources, ...]
    seconds: float
    version: int = 1
