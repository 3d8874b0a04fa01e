"""Figures of one launch in words: what binds it, how full the device is, what warps wait for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from harness.domain.profile import Bottleneck, LaunchCounters, Stall

BUSY = 0.6
"""A unit at this share of its peak is what binds a launch; with none so busy it waits."""
MUCH_MORE = 0.1
TAIL_WAVES = 4.0
"""Up to so many waves a half-empty last one is worth a word."""
CONFLICTS = 0.1
ALLOWS = {"registers": "registers allow", "shared memory": "shared memory allows", "warps": "warps per block allow",
          "blocks": "block slots allow"}
FAR_BELOW = 0.75
"""Of the occupancy that resources allow: less than that is achieved where blocks are few or uneven."""


def bottleneck(dram: float | None, compute: float | None, cache: float | None) -> Bottleneck:
    """What binds a launch whose units reach these shares of their peaks. Traffic with device memory also passes the
    cache, so memory goes first among about equally busy ones."""
    if dram is None and compute is None and cache is None:
        return Bottleneck.UNKNOWN
    memory, work, near = dram or 0.0, compute or 0.0, cache or 0.0
    if memory >= BUSY and work < memory + MUCH_MORE:
        return Bottleneck.MEMORY
    if work >= BUSY and work >= near:
        return Bottleneck.COMPUTE
    if near >= BUSY:
        return Bottleneck.CACHE
    return Bottleneck.LATENCY


def sentences(launch: LaunchCounters) -> str:
    """The whole text of a launch."""
    said = [_bound(launch), _occupancy(launch), _waves(launch.waves), _stall(launch.stalls)]
    if launch.bank_conflicts is not None and launch.bank_conflicts >= CONFLICTS:
        said.append(f"{launch.bank_conflicts:.0%} of the passes over shared memory are bank conflicts.")
    if launch.spill_bytes:
        said.append(f"{launch.spill_bytes} bytes of registers are spilled to memory.")
    return " ".join(text for text in said if text)


def _bound(launch: LaunchCounters) -> str:
    dram, compute, l2 = launch.dram_share, _compute(launch), launch.l2_share
    rate = f" ({launch.dram_gbps:,.0f} GB/s)" if launch.dram_gbps is not None else ""
    if launch.bound is Bottleneck.MEMORY:
        return f"Bound by memory: {dram or 0.0:.0%} of the peak of device memory{rate}."
    if launch.bound is Bottleneck.COMPUTE:
        matrix = f", matrix units at {launch.tensor_share:.0%}" if launch.tensor_share else ""
        what = "arithmetic" if (launch.tensor_share or 0.0) >= BUSY else "instructions"
        return f"Bound by {what}: multiprocessors at {compute or 0.0:.0%} of their peak{matrix}."
    if launch.bound is Bottleneck.CACHE:
        memory = f"; device memory at {dram:.0%}{rate}" if dram is not None else ""
        return f"Bound by the L2 cache: {l2 or 0.0:.0%} of its peak{memory}."
    if launch.bound is Bottleneck.LATENCY:
        units = (("device memory", dram), ("multiprocessors", compute), ("L2 cache", l2))
        shares = ", ".join(f"{name} {share:.0%}" for name, share in units if share is not None)
        return f"Bound by latency: no unit is busy ({shares})."
    return ""


def _compute(launch: LaunchCounters) -> float | None:
    known = [share for share in (launch.sm_share, launch.tensor_share) if share is not None]
    return max(known) if known else None


def _occupancy(launch: LaunchCounters) -> str:
    possible, achieved = launch.occupancy, launch.occupancy_achieved
    if possible is None:
        return ""
    allows = ALLOWS.get(launch.limiter or "")
    allowed = f"{allows} {possible:.0%}" if allows and possible < 1.0 else f"{possible:.0%} possible"
    if achieved is None:
        return f"Occupancy: {allowed}."
    below = ", far below: blocks are few or uneven" if achieved < FAR_BELOW * possible else ""
    return f"{achieved:.0%} of the warp slots were active; {allowed}{below}."


def _waves(waves: float | None) -> str:
    if waves is None:
        return ""
    if waves < 1.0:
        return f"The grid fills {waves:.0%} of what the device holds at once."
    if waves <= TAIL_WAVES and 0.0 < waves % 1.0 < 0.5:
        return f"The last of {waves:.1f} waves is mostly empty."
    return ""


def _stall(stalls: Sequence[Stall]) -> str:
    if not stalls:
        return ""
    first = stalls[0]
    return f"Warps wait longest for {first.text} ({first.share:.0%} of the time between two instructions)."
