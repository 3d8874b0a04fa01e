"""What the kernel says about this machine's processor. Reads files only."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

VENDORS = {"AuthenticAMD": "amd", "GenuineIntel": "intel", "0x41": "arm", "0x61": "apple", "0xc0": "ampere"}
SIMD_WIDTHS = (("avx512f", "AVX-512", 512), ("avx2", "AVX2", 256), ("avx", "AVX", 256), ("asimd", "NEON", 128),
               ("sse4_2", "SSE4.2", 128))
SYSTEM_CPU = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class Cache:
    """One cache level: bytes, and how many CPUs share it."""

    level: int
    kind: str
    bytes: int
    shared_by: int


@dataclass(frozen=True, slots=True)
class CpuInfo:
    """The processor: ``family`` as the kernel numbers it, ``simd_bits`` the widest vector registers."""

    vendor: str
    family: str
    model: str
    cores: int
    simd: str
    simd_bits: int
    caches: tuple[Cache, ...]
    memory_bytes: int

    def cache_bytes(self, level: int) -> int:
        """Bytes of the data cache of ``level``, 0 when there is none."""
        return max((c.bytes for c in self.caches if c.level == level and c.kind != "Instruction"), default=0)

    @property
    def last_level_bytes(self) -> int:
        """Bytes of the largest data cache."""
        return max((c.bytes for c in self.caches if c.kind != "Instruction"), default=0)


def read_cpu(cpuinfo: str | None = None) -> CpuInfo:
    """Describe this machine's first processor; ``cpuinfo`` replaces the text of ``/proc/cpuinfo``."""
    text = Path("/proc/cpuinfo").read_text("utf-8", "replace") if cpuinfo is None else cpuinfo
    known = {name.strip(): value.strip() for name, _, value in
             (line.partition(":") for line in text.partition("\n\n")[0].splitlines())}
    vendor = known.get("vendor_id") or known.get("CPU implementer") or "unknown"
    flags = set((known.get("flags") or known.get("Features") or "").split())
    simd, bits = next(((name, bits) for flag, name, bits in SIMD_WIDTHS if flag in flags), ("scalar", 64))
    return CpuInfo(
        vendor=VENDORS.get(vendor, _word(vendor)),
        family=_word(known.get("cpu family") or known.get("CPU part") or "0"),
        model=known.get("model name") or known.get("CPU part") or "unknown",
        cores=os.cpu_count() or 1, simd=simd, simd_bits=bits, caches=_caches(), memory_bytes=_memory(),
    )


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.lower()) or "unknown"


def _caches() -> tuple[Cache, ...]:
    found = []
    for folder in sorted((SYSTEM_CPU / "cpu0" / "cache").glob("index*")):
        try:
            level, kind, size, shared = (
                (folder / name).read_text().strip() for name in ("level", "type", "size", "shared_cpu_list")
            )
        except OSError:
            continue
        factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(size[-1:], 1)
        found.append(Cache(int(level), kind, int(size.rstrip("KMG")) * factor, len(cpu_list(shared))))
    return tuple(found)


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0


def cpu_list(text: str) -> frozenset[int]:
    """CPU numbers from the kernel's notation, ``"0-3,8"``.

    Raises:
        ValueError: it is not that notation.
    """
    numbers: set[int] = set()
    for part in text.strip().split(","):
        low, dash, high = part.partition("-")
        numbers.update(range(int(low), int(high if dash else low) + 1))
    return frozenset(numbers)
