"""What a candidate's host code may ask about the device, answered from the target's facts."""

from __future__ import annotations

from types import SimpleNamespace

from harness.backends.triton.targets import Target


def device_properties(target: Target) -> SimpleNamespace:
    """What ``torch.cuda.get_device_properties`` answers; an attribute not listed is an AttributeError."""
    major, minor = divmod(target.capability, 10)
    return SimpleNamespace(
        name=target.title, major=major, minor=minor, multi_processor_count=target.multiprocessors,
        total_memory=target.memory_bytes, L2_cache_size=target.l2_bytes, warp_size=target.warp,
        shared_memory_per_block=target.shared_default, shared_memory_per_block_optin=target.shared_optin,
        shared_memory_per_multiprocessor=target.shared_per_sm, regs_per_multiprocessor=target.registers_per_sm,
        max_threads_per_multi_processor=target.threads_per_sm, max_threads_per_block=target.threads_per_block,
        clock_rate=target.clock_khz, memory_clock_rate=target.memory_clock_khz, memory_bus_width=target.bus_bits,
    )


def driver_properties(target: Target) -> dict[str, int]:
    """What Triton's native driver answers."""
    return {
        "max_shared_mem": target.shared_optin, "max_num_regs": target.registers_per_sm,
        "multiprocessor_count": target.multiprocessors, "warpSize": target.warp, "sm_clock_rate": target.clock_khz,
        "mem_clock_rate": target.memory_clock_khz, "mem_bus_width": target.bus_bits,
    }
