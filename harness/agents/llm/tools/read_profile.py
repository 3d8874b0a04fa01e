"""``read_profile``: where the incumbent stands against the roof, and what binds it."""

from __future__ import annotations

from typing import Any

from harness.agents.llm.tools.tool import Refused, Tool, ToolResult, strict
from harness.agents.llm.tools.workbench import Workbench
from harness.agents.profile import Profile, ShapeProfile, counted
from harness.domain.profile import LaunchCounters


def _run(bench: Workbench, arguments: dict[str, Any]) -> ToolResult:
    profile, shape = bench.context.profile, arguments["shape"]
    chosen = [one for one in profile.shapes if shape is None or one.shape == shape]
    if not chosen:
        known = ", ".join(one.shape for one in profile.shapes)
        raise Refused(f"The workload has no shape '{shape}'. Shapes: {known}; null for all.")
    lines = [_overview(profile), *(line for one in chosen for line in _shape(one))]
    return ToolResult("\n".join(lines))


def _overview(profile: Profile) -> str:
    parts = [f"The incumbent: {profile.text}."]
    if profile.headroom is not None:
        parts.append(f"Reaching the roof on every shape would gain {profile.headroom:+.0%}; bound by {profile.bound}.")
    if profile.passes is not None:
        parts.append(f"About {profile.passes} passes over the first input (read off the source).")
    figures = {"registers a thread": profile.registers, "spilled bytes": profile.spill_bytes,
               "shared bytes a block": profile.shared_bytes}
    known = [f"{value:,} {name}" for name, value in figures.items() if value is not None]
    if profile.occupancy is not None:
        known.append(f"occupancy {profile.occupancy:.0%} limited by {profile.limiter}")
    if known:
        parts.append(f"Compiled: {', '.join(known)}.")
    if not counted(profile.counters):
        why = profile.counters.why if profile.counters is not None and profile.counters.why else "none were read"
        parts.append(f"Hardware counters: {why.rstrip('.')}.")
    return " ".join(parts)


def _shape(one: ShapeProfile) -> list[str]:
    measured = "not timed" if one.median_us is None else f"{one.median_us:.1f} us"
    if one.gbps is not None:
        measured += f", {one.gbps:.1f} GB/s"
    if one.roof_share is not None:
        measured += f", {one.roof_share:.0%} of the roof"
    lines = [f"- {one.shape} (weight {one.weight:g}): {measured}; a call has to move {one.bytes:,} bytes and compute "
             f"{one.flops:,} operations ({one.intensity:.2f} per byte)"]
    if one.counters is not None:
        lines.append(f"  {one.counters.text}")
        lines += [f"  launch {launch.function}: {_launch(launch)}" for launch in one.counters.launches]
    return lines


def _launch(launch: LaunchCounters) -> str:
    shares = {"DRAM": launch.dram_share, "multiprocessors": launch.sm_share, "tensor units": launch.tensor_share,
              "L2": launch.l2_share, "occupancy achieved": launch.occupancy_achieved}
    known = [f"{name} {value:.0%}" for name, value in shares.items() if value is not None]
    if launch.waves is not None:
        known.append(f"{launch.waves:.1f} waves")
    stalls = [f"{stall.reason} {stall.share:.0%}" for stall in launch.stalls[:3]]
    if stalls:
        known.append(f"stalls: {', '.join(stalls)}")
    return f"bound by {launch.bound}; {', '.join(known) or 'no counters'}"


READ_PROFILE = Tool(
    "read_profile", "Read the incumbent's profile: times, roof shares, compulsory bytes and operations, what binds it.",
    strict({"shape": {"type": ["string", "null"], "description": "a shape of the workload, or null for all"}}),
    _run,
)
