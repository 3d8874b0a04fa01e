"""What the judge needs from the process that holds a candidate, whatever the backend.

The candidate's process receives bytes and returns bytes: arrays travel as memory files whose size,
dtype and layout the judge fixed, everything else as small JSON. Nothing a worker says is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from harness.domain.vocabulary import Outcome

ROW_GAP = 13
"""Elements between the rows of a strided array where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Lent:
    """One array lent to a worker: a view of ``shape`` and ``strides`` (elements) starting ``offset`` bytes into
    the memory file ``fd`` of ``nbytes`` bytes. Guard bands lie around the view in the same file."""

    name: str
    kind: Literal["input", "output"]
    dtype: str  # float32, float16, bfloat16, int32, int64
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    nbytes: int
    fd: int


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong in a worker, already classified: outcome, sentence, candidate line, and the case that was called
    where the judge knows it."""

    outcome: Outcome
    code: str
    text: str
    line: int | None = None
    case: str | None = None


class CandidateFault(Exception):
    """The candidate failed in its process: exception, crash, limit, timeout, refusal."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.text)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class LoadReport:
    """A candidate was imported. ``seconds`` is the judge's clock."""

    seconds: float


@dataclass(frozen=True, slots=True)
class CallReport:
    """One call returned. ``seconds`` is the judge's clock around the request, ``claimed_s`` the worker's own."""

    seconds: float
    claimed_s: float | None = None
    scratch_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Announced:
    """A call to come, without its contents: sizes by dimension, complete attributes, dtype, layout (``dense``,
    ``strided``, ``offset``) and elements between strided rows as the judge will lend the arrays."""

    dims: Mapping[str, int]
    attributes: Mapping[str, float]
    dtype: str
    layout: str = "dense"
    gap: int = ROW_GAP


class Worker(Protocol):
    """A sandboxed process that holds exactly one candidate. Every method may raise ``CandidateFault``."""

    def load(self, source: str) -> LoadReport:
        """Import the candidate; happens before any seed or input of this evaluation exists."""
        ...

    def call(self, lent: Sequence[Lent], attributes: Mapping[str, float]) -> CallReport:
        """Run ``run(*inputs, *outputs, **attributes)`` once; the process is frozen when this returns
        (``SIGSTOP`` to its whole tree), so outputs cannot change while the judge reads them."""
        ...

    def close(self) -> None:
        """Kill the process and everything it started; idempotent."""
        ...


class PlanReplayer(Worker, Protocol):
    """A worker that runs recorded plans of its candidate, so that work can be announced and a launch left out."""

    def prepare(self, calls: Sequence[Announced]) -> None:
        """Record and compile what ``calls`` need, before the device is held. A call that was not announced is
        prepared when it comes."""
        ...

    def launches(self, lent: Sequence[Lent], attributes: Mapping[str, float]) -> tuple[str, ...]:
        """The kernel functions that one call launches, in order."""
        ...

    def call_without(self, lent: Sequence[Lent], attributes: Mapping[str, float], launch: int) -> CallReport:
        """``call``, leaving out one launch by its number."""
        ...

    def rest(self) -> None:
        """Give the device back until the next call."""
        ...


class WorkerOpener(Protocol):
    """Opens workers of one mode (``numba``, ``triton-interpret``, ``triton-device``, ``triton-plan``) at the proved
    isolation level."""

    @property
    def isolation(self) -> int:
        """The proved level, 0 to 3."""
        ...

    @property
    def proved(self) -> tuple[str, ...]:
        """Names of the walls that the escape probe found standing."""
        ...

    def open(
        self, *, bounds_checks: bool = False, deadline_s: float | None = None, options: Mapping[str, Any] | None = None
    ) -> Worker:
        """A fresh process forked from the mode's warm server. ``bounds_checks`` compiles numba with them on."""
        ...
