"""Predictions that are sums: gains from what a change does to bytes, launches and the share of the device in use."""

from __future__ import annotations

import math
from collections.abc import Callable

from harness.agents.profile import ITEM_BYTES
from harness.agents.protocol import AgentContext
from harness.operators.base import Dims

LAUNCH_US = 2.5
"""What a launch in a graph costs, about (measured on an H200)."""
BYTES_PER_US = 4e6
"""What a large GPU's memory moves in a microsecond, about; only where nothing was measured."""

def over_shapes(context: AgentContext, speedup: Callable[[Dims], float]) -> float:
    """The campaign's gain (a fraction) where ``speedup`` says how many times faster each shape becomes: the weighted
    geometric mean, as the verdict has it."""
    points = context.spec.workloads[context.goal.workload].shapes[context.goal.backend]
    return math.exp(math.fsum(point.weight * math.log(speedup(point.dims)) for point in points)) - 1.0


def from_traffic(before: float, after: float) -> float:
    """The gain of a kernel that waits for memory when it moves ``after`` instead of ``before`` bytes."""
    return before / after - 1.0


def multiprocessors(context: AgentContext, otherwise: int = 132) -> int:
    """Multiprocessors of the hardware; ``otherwise`` where its digest does not say."""
    value = context.hardware.get("multiprocessors", otherwise)
    return value if isinstance(value, int) and value > 0 else otherwise


def fill(programs: int, context: AgentContext) -> float:
    """The share of multiprocessors that have a program to run."""
    return min(1.0, programs / multiprocessors(context))


def measured_us(context: AgentContext, dims: Dims) -> float | None:
    """The incumbent's median time of the shape with ``dims``, ``None`` where it was not timed."""
    points = context.spec.workloads[context.goal.workload].shapes[context.goal.backend]
    label = next((point.label for point in points if point.dims == dims), None)
    return next((shape.median_us for shape in context.profile.shapes if shape.shape == label), None)


def call_us(context: AgentContext, dims: Dims) -> float:
    """``measured_us``; where it was not timed, what a launch and its compulsory bytes take on a GPU of which ``rows``
    programs use their share."""
    measured = measured_us(context, dims)
    if measured is not None:
        return measured
    dtype = context.spec.workloads[context.goal.workload].dtypes[context.goal.backend]
    moved = context.spec.bytes_per_call(dims, ITEM_BYTES.get(dtype, 4))
    return LAUNCH_US + moved / (BYTES_PER_US * fill(dims.get("rows", 1), context))
