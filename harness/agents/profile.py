"""A typed profile of the incumbent: what the verdict measured, put beside what the operator must move and compute.

Bytes and FLOPs come from the operator's cost model (compulsory traffic), times and roof shares from the verdict. For
numba the number of passes over the data is read off the source: an estimate, labelled as one. Where the evaluation
profiled the incumbent (``harness.evaluation.profile``) its counters are here as well, and say what binds it.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import Literal

from harness.domain.parsing import syntax_tree
from harness.domain.profile import Bottleneck, CounterProfile, ProfileSource, ShapeCounters
from harness.domain.summary import VerdictSummary
from harness.domain.vocabulary import Backend
from harness.operators.base import OperatorSpec

ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
LEAST_CALL_US = 2.0
"""What the launch of a call takes on a GPU whatever it moves: the shortest one measured on an H200 took 2.07 us."""
MEMORY_BOUND = 0.7
"""From this share of the roof on, moving less data is the only thing left to gain."""
Bound = Literal["memory", "cache", "compute", "latency", "instructions", "unknown"]
BOUNDS: dict[Bottleneck, Bound] = {
    Bottleneck.MEMORY: "memory", Bottleneck.CACHE: "cache", Bottleneck.COMPUTE: "compute",
    Bottleneck.LATENCY: "latency",
}


@dataclass(frozen=True, slots=True)
class ShapeProfile:
    """One shape. ``bytes`` and ``flops`` of one call, ``intensity`` in FLOP per byte, measured figures where timed,
    ``counters`` where it was profiled."""

    shape: str
    weight: float
    bytes: int
    flops: int
    intensity: float
    median_us: float | None
    gbps: float | None
    roof_share: float | None
    counters: ShapeCounters | None = None
    least_us: float = 0.0
    """What no kernel is rid of beside bytes and FLOPs."""

    @property
    def reached(self) -> float | None:
        """The share of the measured time that the roof and the launch account for, at most 1; ``None`` where not
        timed."""
        if not self.roof_share:
            return None
        return min(1.0, self.roof_share + (self.least_us / self.median_us if self.median_us else 0.0))


@dataclass(frozen=True, slots=True)
class Profile:
    """The incumbent at a glance. ``bound`` is ``unknown`` where nothing was timed; by counters it is the one of the
    shapes with the most weight, without them the roof share decides between ``memory`` and ``instructions``.

    ``occupancy`` and its ``limiter`` are arithmetic from the compiler's figures, ``counters`` the profiler's."""

    shapes: tuple[ShapeProfile, ...]
    roof_share: float | None
    bound: Bound
    passes: int | None
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    occupancy: float | None = None
    limiter: str | None = None
    counters: CounterProfile | None = None

    @property
    def headroom(self) -> float | None:
        """The gain, as a fraction, of a kernel that reaches the roof on every shape, its launch beside it: weighted
        geometric mean of the shapes' speedups, as a verdict has it; ``None`` where not timed."""
        known = [(shape.weight, shape.reached) for shape in self.shapes if shape.reached is not None]
        total = math.fsum(weight for weight, _ in known)
        if not total:
            return None
        return math.exp(-math.fsum(weight * math.log(share or 1.0) for weight, share in known) / total) - 1.0

    @property
    def text(self) -> str:
        """For hypotheses: where the incumbent stands, and what its counters say where they were read."""
        if self.roof_share is None:
            return "not timed here; only the cost model speaks"
        worst = min((s for s in self.shapes if s.roof_share is not None), key=lambda s: s.roof_share or 0.0)
        reached = (f"the incumbent reaches {self.roof_share:.0%} of the measured roof (least at {worst.shape}: "
                   f"{worst.roof_share or 0:.0%})")
        if not counted(self.counters):
            return f"{reached}, so {'memory traffic' if self.bound == 'memory' else 'instructions'} bound it"
        spoken = worst if worst.counters is not None else next((s for s in self.shapes if s.counters is not None), None)
        if spoken is None or spoken.counters is None:
            return f"{reached}, bound by {self.bound} by its counters"
        return f"{reached}; counters at {spoken.shape}: {spoken.counters.text.rstrip('.')}"


def profile_of(spec: OperatorSpec, backend: Backend, workload: str, verdict: VerdictSummary | None,
               source: str) -> Profile:
    """Join the cost model, the verdict's measurements and the source's loops."""
    measured = {shape.shape: shape for shape in verdict.shapes} if verdict else {}
    profiled = verdict.counters if verdict else None
    by_shape = {shape.shape: shape for shape in profiled.shapes} if profiled else {}
    declared = spec.workloads[workload]
    item = ITEM_BYTES.get(declared.dtypes[backend], 4)
    shapes = []
    for point in declared.shapes[backend]:
        moved, work = spec.bytes_per_call(point.work, item), spec.flops_per_call(point.work)
        seen = measured.get(point.label)
        shapes.append(ShapeProfile(
            point.label, point.weight, moved, work, work / moved, seen.median_us if seen else None,
            seen.gbps if seen else None, seen.roof_share if seen else None, by_shape.get(point.label),
            LEAST_CALL_US if backend is Backend.TRITON else 0.0,
        ))
    known = [(s.weight, s.roof_share) for s in shapes if s.roof_share is not None]
    total = sum(weight for weight, _ in known)
    share = sum(weight * (value or 0.0) for weight, value in known) / total if total else None
    return Profile(
        shapes=tuple(shapes), roof_share=share,
        bound=_bound(share, shapes if counted(profiled) else []),
        passes=loops_over_input(source, spec.inputs[0].name) if backend is Backend.NUMBA else None,
        registers=verdict.registers if verdict else None,
        spill_bytes=verdict.spill_bytes if verdict else None,
        shared_bytes=verdict.shared_bytes if verdict else None,
        occupancy=verdict.occupancy if verdict else None,
        limiter=verdict.limiter if verdict else None,
        counters=profiled,
    )


def counted(profile: CounterProfile | None) -> bool:
    """Whether hardware counters were read."""
    return profile is not None and profile.source is ProfileSource.COUNTERS


def _bound(share: float | None, shapes: list[ShapeProfile]) -> Bound:
    """What binds the incumbent: by the counters of ``shapes``, else by how near the roof it is."""
    weights: dict[Bottleneck, float] = {}
    for shape in shapes:
        if shape.counters is not None and shape.counters.bound is not Bottleneck.UNKNOWN:
            weights[shape.counters.bound] = weights.get(shape.counters.bound, 0.0) + shape.weight
    if weights:
        return BOUNDS[max(weights, key=lambda bound: weights[bound])]
    if share is None:
        return "unknown"
    return "memory" if share >= MEMORY_BOUND else "instructions"


def loops_over_input(source: str, name: str) -> int | None:
    """How many innermost loops read array ``name`` (or a row view of it) in the busiest function: an estimate of the
    passes over the data. ``None`` where the source does not parse."""
    try:
        tree = syntax_tree(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    counts = [_passes(node, name) for node in tree.body if isinstance(node, ast.FunctionDef)]
    return max(counts, default=0)


def _passes(function: ast.FunctionDef, name: str) -> int:
    views = {name}
    for node in ast.walk(function):  # ast.walk is breadth first; two sweeps follow views of views
        if isinstance(node, ast.Assign) and _reads(node.value, views):
            views |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    loops = [node for node in ast.walk(function) if isinstance(node, ast.For)]
    inner = [loop for loop in loops if not any(isinstance(n, ast.For) for stmt in loop.body for n in ast.walk(stmt))]
    return sum(any(_subscripts(stmt, views) for stmt in loop.body) for loop in inner)


def _reads(value: ast.expr, views: set[str]) -> bool:
    return isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and value.value.id in views


def _subscripts(statement: ast.stmt, views: set[str]) -> bool:
    return any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load) and isinstance(n.value, ast.Name)
               and n.value.id in views for n in ast.walk(statement))
