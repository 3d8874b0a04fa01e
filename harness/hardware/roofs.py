"""Measured roofs of this CPU's timing core: bytes per second by footprint, and float32 operations per second.

A roof is the best rate seen, not a typical one. Measured once per environment class and kept in a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.domain.errors import InfrastructureError
from harness.domain.vocabulary import Backend
from harness.hardware.cores import Cores, reserve
from harness.hardware.detect import detect_cpu, environment

VAR = "KERNELOPT_VAR"
PROGRAM = Path(__file__).with_name("roof_program.py")
MEASURE_S = 120.0


@dataclass(frozen=True, slots=True)
class Level:
    """Rates in bytes per second over arrays that fill ``footprint`` bytes together: read alone, and read plus write."""

    footprint: int
    read: float
    copy: float


@dataclass(frozen=True, slots=True)
class Roofs:
    """``levels`` by rising footprint; ``flops`` per second of a float32 matrix product; ``threads`` used."""

    levels: tuple[Level, ...]
    flops: float
    threads: int

    def bandwidth(self, footprint: int) -> float:
        """The fastest way through memory at ``footprint`` bytes: the rate of the largest level not above it."""
        fitting = [level for level in self.levels if level.footprint <= footprint] or list(self.levels[:1])
        return max(max(level.read, level.copy) for level in self.levels[len(fitting) - 1 :])

    def floor_s(self, bytes_moved: int, flops: int, footprint: int) -> float:
        """Seconds below which no honest call can be."""
        return max(bytes_moved / self.bandwidth(footprint), flops / self.flops)


def var_folder() -> Path:
    """Where measured facts are kept: ``KERNELOPT_VAR``, else the user's cache folder."""
    chosen = os.environ.get(VAR)
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernelopt"


def roofs(*, afresh: bool = False) -> Roofs:
    """The roofs of this machine, from the file or measured now (about two seconds).

    With ``afresh`` they are measured again and the best rates ever seen are kept: a file may come from a busy hour, and
    nobody is refused for that.

    Raises:
        InfrastructureError: the measuring program failed.
    """
    cores = reserve()
    name = environment(Backend.NUMBA).class_.replace("/", "_")
    path = var_folder() / "roofs" / f"{name}.json"
    known = None
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = _from_document(json.loads(path.read_text("utf-8")))
        if not afresh:
            return known
    measured = best(known, measure(cores))
    with contextlib.suppress(OSError):  # without a place to keep it, it is measured again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(asdict(measured)), "utf-8")
        partial.replace(path)
    return measured


def best(known: Roofs | None, new: Roofs) -> Roofs:
    """The higher rate of both, level by level; ``new`` alone where the levels are not the same."""
    if known is None or [level.footprint for level in known.levels] != [level.footprint for level in new.levels]:
        return new
    levels = tuple(Level(a.footprint, max(a.read, b.read), max(a.copy, b.copy))
                   for a, b in zip(known.levels, new.levels, strict=True))
    return Roofs(levels, max(known.flops, new.flops), new.threads)


def _from_document(document: dict[str, Any]) -> Roofs:
    levels = tuple(Level(int(i["footprint"]), float(i["read"]), float(i["copy"])) for i in document["levels"])
    return Roofs(levels, float(document["flops"]), int(document["threads"]))


def measure(cores: Cores) -> Roofs:
    """Measure in a fresh process on the timing cores.

    Raises:
        InfrastructureError: the measuring program failed.
    """
    cpu = detect_cpu()
    second, last = cpu.cache_bytes(2) or 1 << 20, cpu.last_level_bytes or 32 << 20
    footprints = sorted({second // 2, second * 2, last // 2, 2 * last, 3 * last})
    asked = json.dumps({"cores": cores.timing, "footprints": footprints})
    threads = str(cores.threads)
    environment_of_child = {"PATH": os.defpath, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads,
                            "NUMBA_NUM_THREADS": threads}
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-B", str(PROGRAM), asked], env=environment_of_child, capture_output=True,
            timeout=MEASURE_S, check=True, text=True,
        )
        return _from_document({**json.loads(done.stdout), "threads": cores.threads})
    except (subprocess.SubprocessError, ValueError, KeyError) as error:
        raise InfrastructureError(f"The memory roof of this machine could not be measured: {error}.") from error
