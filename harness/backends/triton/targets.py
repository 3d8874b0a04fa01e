"""Facts of the GPUs that plans are compiled for, as the CUDA driver reports them. Pure data, no torch."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from harness.domain.errors import UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """One GPU model. Bytes, counts and kHz, named as the driver attributes they come from.

    ``shared_optin`` is the most dynamic shared memory one block may ask for, ``shared_reserved`` what the
    system takes per block on top of it, ``register_unit`` the granularity of registers per warp.
    """

    name: str
    title: str
    capability: int
    multiprocessors: int
    shared_default: int
    shared_optin: int
    shared_per_sm: int
    shared_reserved: int
    registers_per_sm: int
    threads_per_sm: int
    blocks_per_sm: int
    l2_bytes: int
    memory_bytes: int
    clock_khz: int
    memory_clock_khz: int
    bus_bits: int
    warp: int = 32
    register_unit: int = 256
    registers_per_thread: int = 255
    threads_per_block: int = 1024
    ctas_per_cluster: int = 16  # beyond 8 a launch has to ask for it

    @property
    def label(self) -> str:
        """The compiler's name for the architecture, ``cuda:90``."""
        return f"cuda:{self.capability}"


# Queried on the device itself (CUDA 13.0, driver 580).
_H200 = Target(
    name="nvidia-h200",
    title="NVIDIA H200",
    capability=90,
    multiprocessors=132,
    shared_default=49_152,
    shared_optin=232_448,
    shared_per_sm=233_472,
    shared_reserved=1_024,
    registers_per_sm=65_536,
    threads_per_sm=2_048,
    blocks_per_sm=32,
    l2_bytes=62_914_560,
    memory_bytes=150_109_880_320,
    clock_khz=1_980_000,
    memory_clock_khz=3_201_000,
    bus_bits=6_016,
)

# From the tuning guides (shared memory, registers, warps) and the datasheets, not queried: memory is nominal.
_H100 = dataclasses.replace(
    _H200, name="nvidia-h100", title="NVIDIA H100", l2_bytes=52_428_800, memory_bytes=80_000_000_000,
    memory_clock_khz=2_619_000, bus_bits=5_120,
)
_A100 = dataclasses.replace(
    _H200, name="nvidia-a100", title="NVIDIA A100", capability=80, multiprocessors=108, shared_optin=166_912,
    ctas_per_cluster=1, shared_per_sm=167_936, l2_bytes=41_943_040, memory_bytes=80_000_000_000, clock_khz=1_410_000,
    memory_clock_khz=1_593_000, bus_bits=5_120,
)

TARGETS = {target.name: target for target in (_H200, _H100, _A100)}
DEFAULT_TARGET = _H200.name


def find_target(name: str | None) -> Target:
    """The target called ``name``; the default one for ``None`` and for ``interpreter``.

    Raises:
        UsageError: a name that is not in ``TARGETS``.
    """
    if name is None or name == "interpreter":
        return TARGETS[DEFAULT_TARGET]
    if name not in TARGETS:
        known = ", ".join(sorted(TARGETS))
        raise UsageError(
            f"'{name}' is not a GPU that plans can be compiled for. Known: {known}. Name one of them.",
            code="unknown_hardware",
        )
    return TARGETS[name]


@dataclass(frozen=True, slots=True)
class Residency:
    """How many blocks a multiprocessor holds at once and what keeps it from holding more: ``registers``, ``shared
    memory``, ``warps`` (their slots are full) or ``blocks`` (those are). ``occupancy`` is the share of warp slots
    filled, between 0 and 1."""

    blocks: int
    occupancy: float
    limiter: str


def residency(target: Target, *, registers: int, warps: int, shared_bytes: int) -> Residency:
    """What resident blocks fill of a multiprocessor.

    ``registers`` per thread, ``warps`` per block, ``shared_bytes`` of dynamic shared memory per block. The lowest of
    four limits counts: warp slots, block slots, register file (allocated per warp in units), shared memory. Of equal
    ones the first of these names it: with all warp slots full nothing else matters.
    """
    slots = target.threads_per_sm // target.warp
    per_warp = -(-registers * target.warp // target.register_unit) * target.register_unit
    limits = {
        "warps": slots // warps,
        "registers": target.registers_per_sm // max(1, per_warp * warps),
        "shared memory": target.shared_per_sm // (shared_bytes + target.shared_reserved),
        "blocks": target.blocks_per_sm,
    }
    limiter = min(limits, key=limits.__getitem__)
    return Residency(limits[limiter], limits[limiter] * warps / slots, limiter)


def occupancy(target: Target, *, registers: int, warps: int, shared_bytes: int) -> float:
    """Share of a multiprocessor's warp slots that resident blocks can fill; see ``residency``."""
    return residency(target, registers=registers, warps=warps, shared_bytes=shared_bytes).occupancy
