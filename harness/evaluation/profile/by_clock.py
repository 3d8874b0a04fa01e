"""A profile without counters: what the launcher's clock and the compiler say, and nothing more. Pure."""

from __future__ import annotations

from dataclasses import replace

from harness.domain.plan import LaunchResources
from harness.domain.profile import Bottleneck, LaunchCounters, ShapeCounters
from harness.domain.verdict import ShapeTiming
from harness.evaluation.profile.words import BUSY, sentences

THREADS_PER_WARP = 32


def shape_by_clock(timing: ShapeTiming, launches: tuple[LaunchResources, ...]) -> ShapeCounters:
    """One shape. Its launches have no times of their own: the clock times whole calls."""
    bound = bound_of(timing)
    rows = tuple(_launch(row) for row in launches)
    us = timing.cold_us if timing.cold_us is not None else timing.median_us
    text = " ".join([_bound_text(timing, bound), *dict.fromkeys(row.text for row in rows if row.text)])
    return ShapeCounters(timing.shape, bound, text, us, rows)


def bound_of(timing: ShapeTiming) -> Bottleneck:
    """The roof that binds, where the call comes near it; whether latency or instructions hold a slower call back, a
    clock cannot tell."""
    if timing.roof_share is None or timing.roof_share < BUSY:
        return Bottleneck.UNKNOWN
    memory = max(timing.copy_share or 0.0, timing.read_share or 0.0)
    return Bottleneck.COMPUTE if (timing.matmul_share or 0.0) > memory else Bottleneck.MEMORY


def _bound_text(timing: ShapeTiming, bound: Bottleneck) -> str:
    share = f"{timing.roof_share:.0%} of the measured roof" if timing.roof_share is not None else "no roof is known"
    rate = f" ({timing.gbps:,.0f} GB/s)" if timing.gbps is not None else ""
    if bound is Bottleneck.MEMORY:
        return f"Bound by memory: {share}{rate}."
    if bound is Bottleneck.COMPUTE:
        return f"Bound by arithmetic: {share} ({timing.tflops or 0.0:,.0f} TFLOP/s)."
    return f"Not near a roof: {share}{rate}; without counters nobody knows what it waits for."


def _launch(row: LaunchResources) -> LaunchCounters:
    made = LaunchCounters(
        function=row.function, grid=row.grid, threads=THREADS_PER_WARP * row.num_warps, bound=Bottleneck.UNKNOWN,
        text="", occupancy=row.occupancy, limiter=row.limiter, registers=row.registers, shared_bytes=row.shared_bytes,
        spill_bytes=row.spill_bytes,
    )
    return replace(made, text=sentences(made))
