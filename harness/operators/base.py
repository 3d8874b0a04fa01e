"""What an operator declares. Data and small pure functions only: no torch, no numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.domain.vocabulary import Backend, Tier

Dims = Mapping[str, int]
"""Sizes by dimension name, for instance ``{"rows": 2048, "cols": 4096}``."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One array of the signature. ``dims`` name its axes; ``dtype`` ``None`` means the case's dtype.

    ``strided``: rows may be further apart than their length (last stride is 1 always).
    ``per_call``: contents change with every timed call (a weight does not).
    ``counts``: for an integer argument, the dimension of which it says how much is in use (``seq_lens``: ``max_seq``).
    """

    name: str
    kind: Literal["input", "output"]
    dims: tuple[str, ...]
    dtype: str | None = None
    strided: bool = False
    per_call: bool = True
    counts: str | None = None


@dataclass(frozen=True, slots=True)
class Attribute:
    """A keyword argument of ``run`` with the values that cases draw from.

    ``dim``: the dimension whose size it is, where outputs have one that no input shows (``k`` of a top-k)."""

    name: str
    kind: Literal["float", "int"]
    values: tuple[float, ...]
    default: float
    dim: str | None = None


@dataclass(frozen=True, slots=True)
class Tunable:
    """A PARAMS key an agent may change. ``choices`` for enumerations, otherwise an integer range.

    ``tier`` is ``medium`` for algorithm switches and numeric modes, ``light`` otherwise.
    """

    key: str
    backends: tuple[Backend, ...]
    low: int = 0
    high: int = 0
    power_of_two: bool = False
    choices: tuple[int | str | bool, ...] = ()
    tier: Tier = Tier.LIGHT
    note: str = ""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Shape buckets that PARAMS values may be tables over: names with upper bounds of one dimension, ``None`` last."""

    dim: str
    bounds: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class ShapePoint:
    """One measured shape. Weights of a workload sum to 1.

    ``regimes``: value regimes of its own, in place of the workload's (lengths that differ within a batch).
    ``in_use``: for a dimension that an integer argument counts the use of, how much of it is used on average, where it
    is not all: what a call has to move and compute follows from it."""

    label: str
    dims: Dims
    weight: float
    attributes: Mapping[str, float] = field(default_factory=dict)
    regimes: tuple[str, ...] = ()
    in_use: Mapping[str, int] = field(default_factory=dict)

    @property
    def work(self) -> Dims:
        """The sizes that bytes and operations of a usual call are reckoned from."""
        return {**self.dims, **self.in_use}


@dataclass(frozen=True, slots=True)
class Workload:
    """What a campaign is measured on: shapes with weights, one dtype per backend, value regimes mixed
    into timed data."""

    name: str
    title: str
    shapes: Mapping[Backend, tuple[ShapePoint, ...]]
    dtypes: Mapping[Backend, str]
    regimes: tuple[str, ...]
    note: str = ""

    def regimes_of(self, point: ShapePoint) -> tuple[str, ...]:
        """The value regimes that the contents of ``point`` mix."""
        return point.regimes or self.regimes


@dataclass(frozen=True, slots=True)
class Case:
    """One correctness case. ``regime`` names a value generator, ``layout`` is ``dense``, ``strided`` or ``offset``;
    ``dtype`` ``None`` means the workload's dtype for the backend."""

    name: str
    dims: Dims
    regime: str
    reason: str
    layout: Literal["dense", "strided", "offset"] = "dense"
    attributes: Mapping[str, float] = field(default_factory=dict)
    smoke: bool = False
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """The sizes that one dimension may have, ``low`` to ``high``, both included. ``times``: the dimension that it is a
    multiple of; ``low`` and ``high`` are then of the factor (query heads: 1 to 16 for each cache head). ``within``: the
    dimension that it is never larger than (a top-k of at most the columns)."""

    low: int
    high: int
    times: str | None = None
    within: str | None = None


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The bound of one dtype: |y - y64| <= max(factor * honest error, ulps * unit round-off * scale + sqrt(K) term),
    capped at ``cap`` relative (R4). ``reason`` is shown to reviewers. A ``cap`` of 0 demands the very value: nothing is
    computed, only chosen. Integer outputs must be right whatever the tolerance."""

    dtype: str
    factor: float
    ulps: float
    cap: float
    reason: str

    @property
    def exact(self) -> bool:
        """Whether no error at all is allowed."""
        return self.cap == 0.0


@dataclass(frozen=True, slots=True)
class TileDemand:
    """Feasibility (R18): shared bytes and live registers one block of a Triton candidate needs, the sum in words."""

    shared_bytes: int
    registers_per_thread: int
    text: str


@dataclass(frozen=True, slots=True)
class WrongKernel:
    """A kernel that must be refused, one per failure class: ``name`` is its file ``wrong/<backend>/<name>.py``,
    ``outcomes`` the refusals accepted."""

    name: str
    backend: Backend
    failure: str
    outcomes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """Everything a person declares about an operator. ``implementation`` is the dotted module that torch code lives in
    (imported by the evaluator only): ``make_inputs``, ``reference``, ``magnitude``, ``honest``, ``libraries``,
    ``relations``, ``exact_probes`` (see ``harness.operators.implementation``).

    ``row_factor``: every element of a row (the outputs' last axis) is multiplied by one factor that comes from the
    row's sum, so that the sum's error is common to them (a softmax's denominator).
    ``elementwise_local``: an element of an output depends on elements of the same indices alone, but for the last axis,
    along which it may depend on a few (its pair): indices of every other axis are problems of their own.
    ``groups``: a dimension whose indices are problems of their own within a row, together with what is a multiple of it
    (a cache head and its query heads), where the operator is not elementwise.
    ``domain``: the sizes that an answer must be right for, every dimension of them. The probes draw from all of it, so
    that a kernel that is right for the listed sizes alone does not pass. The dimension whose remainders matter most
    comes first; one that is a multiple of another comes after it.
    ``shared_regimes``: regimes of the cases about an argument that all rows share (a weight), which cannot be rows
    beside others. ``short_regimes``: regimes that are fair in float32 for short rows alone (honest serial sums of long
    ones would differ)."""

    name: str
    version: str
    title: str
    formula: str
    semantics: str
    arguments: tuple[Argument, ...]
    attributes: tuple[Attribute, ...]
    workloads: Mapping[str, Workload]
    cases: tuple[Case, ...]
    interpret_cases: tuple[Case, ...]
    tolerances: Mapping[str, Tolerance]
    tunables: tuple[Tunable, ...]
    buckets: Buckets | None
    bytes_per_call: Callable[[Dims, int], int]
    flops_per_call: Callable[[Dims], int]
    reduction_length: Callable[[Dims], int]
    tile: Callable[[Mapping[str, object], Dims, int], TileDemand] | None
    wrong_kernels: tuple[WrongKernel, ...]
    implementation: str
    folder: Path
    elementwise_local: bool = False
    deterministic: bool = True
    row_factor: bool = False
    groups: str | None = None
    domain: Mapping[str, Span] = field(default_factory=dict)
    shared_regimes: tuple[str, ...] = ()
    short_regimes: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """Input arrays in signature order."""
        return tuple(argument for argument in self.arguments if argument.kind == "input")

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """Output arrays in signature order."""
        return tuple(argument for argument in self.arguments if argument.kind == "output")

    @property
    def signature(self) -> str:
        """The required head of ``run``, for instance ``run(x, weight, out, *, eps)``."""
        names = [argument.name for argument in self.arguments]
        if self.attributes:
            names += ["*", *(attribute.name for attribute in self.attributes)]
        return f"run({', '.join(names)})"

    def attributes_for(self, dims: Dims, given: Mapping[str, float]) -> dict[str, float]:
        """``given`` completed by the declared defaults; an attribute that is the size of a dimension follows ``dims``.
        """
        sizes = {one.name: dims[one.dim] for one in self.attributes if one.dim is not None and one.dim in dims}
        return {one.name: one.default for one in self.attributes} | dict(given) | sizes

    def baseline(self, backend: Backend) -> str:
        """Source of the shipped baseline kernel (R12): reasonable, not deeply tuned."""
        return (self.folder / "baselines" / f"{backend}.py").read_text("utf-8")

    def wrong_source(self, kernel: WrongKernel) -> str:
        """Source of one of the wrong kernels."""
        return (self.folder / "wrong" / kernel.backend / f"{kernel.name}.py").read_text("utf-8")

    def tunable(self, key: str, backend: Backend) -> Tunable | None:
        """The declaration of PARAMS key ``key`` for ``backend``, or ``None``."""
        return next((t for t in self.tunables if t.key == key and backend in t.backends), None)
