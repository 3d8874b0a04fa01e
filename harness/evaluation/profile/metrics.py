"""The fixed set of Nsight Compute's metrics that a profile asks for, and what they are called here.

Names as in the Nsight Compute CLI's metrics reference for Volta and newer. A metric that a chip or version does not
have stays out of the profile.
"""

from __future__ import annotations

SHARES = {
    "dram_share": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm_share": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "tensor_share": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "l2_share": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_hit": "lts__t_sector_hit_rate.pct",
    "occupancy": "sm__maximum_warps_per_active_cycle_pct",
    "occupancy_achieved": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
"""Fields of ``LaunchCounters`` that come as per cent."""
TIME = "gpu__time_duration.sum"
READ_BYTES, WRITTEN_BYTES = "dram__bytes_read.sum", "dram__bytes_write.sum"
WAVES, REGISTERS = "launch__waves_per_multiprocessor", "launch__registers_per_thread"
SHARED_BYTES = ("launch__shared_mem_per_block_dynamic", "launch__shared_mem_per_block_static")
LIMITS = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "warps": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
}
"""Blocks that a multiprocessor could hold for each resource alone; the least one limits."""
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
STALL_METRIC = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
ISSUED = "selected"
"""Not a stall: the warp issued."""
STALLS = {
    "long_scoreboard": "loads from device memory or the caches",
    "short_scoreboard": "shared memory or special functions",
    "barrier": "the other warps of the block at a barrier",
    "membar": "a memory fence",
    "mio_throttle": "room in the queue of shared memory and special functions",
    "lg_throttle": "room in the queue of loads and stores",
    "tex_throttle": "room in the texture queue",
    "math_pipe_throttle": "a busy arithmetic unit",
    "wait": "a fixed delay between dependent instructions",
    "not_selected": "other warps that were ready as well",
    "no_instruction": "instructions to be fetched",
    "dispatch_stall": "the dispatcher",
    "drain": "stores to end before the warp exits",
    "imc_miss": "constants to be fetched",
    "branch_resolving": "a branch to be resolved",
    "sleeping": "a sleep to end",
    "gmma": "matrix units or their operands",
    "misc": "something else",
}
"""Reasons, and what warps wait for, in words."""

METRICS = (
    TIME, READ_BYTES, WRITTEN_BYTES, *SHARES.values(), WAVES, REGISTERS, *SHARED_BYTES, *LIMITS.values(), CONFLICTS,
    WAVEFRONTS, *(STALL_METRIC.format(name) for name in (ISSUED, *STALLS)),
)
