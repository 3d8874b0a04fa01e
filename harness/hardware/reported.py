"""What this host's GPU reports of itself, and what was measured on it: it fills a digest. Measures nothing."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.domain.vocabulary import Backend
from harness.hardware import nvml
from harness.hardware.detect import environment
from harness.hardware.device_roofs import kept_roofs
from harness.hardware.gpu_facts import Fact
from harness.hardware.matmul import kept_matmul

PROGRAM = Path(__file__).with_name("device_program.py")
ASK_S = 20.0
KEPT = ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
DRIVER = "the driver of this host"
MEASURED = "measured on this host"


@functools.cache
def attributes() -> Mapping[str, Any]:
    """Attributes of the GPU that evaluations use, by the names of ``device_program``; empty where there is none."""
    if not nvml.NODE.exists():
        return {}
    kept = {name: os.environ[name] for name in KEPT if name in os.environ} | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    try:
        done = subprocess.run([sys.executable, "-I", "-B", str(PROGRAM), "0"], capture_output=True, text=True, env=kept,
                              timeout=ASK_S, check=True)
        told = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}
    return told if isinstance(told, dict) and "absent" not in told else {}


def facts_of(told: Mapping[str, Any]) -> tuple[Fact, ...]:
    """The driver's attributes as facts; what it does not tell is left out. Bandwidth is what clock and bus allow."""
    made = (
        _fact("Architecture", told, "compute capability {major}.{minor}"),
        _fact("Multiprocessors", told, "{multiprocessors}"),
        _fact("Memory", told, "{memory_bytes:,} bytes"),
        _fact("L2 cache", told, "{l2_bytes:,} bytes"),
        _fact("Shared memory", told, "{shared_optin:,} bytes per block, {shared_per_sm:,} per multiprocessor"),
        _fact("Registers", told, "{registers_per_sm:,} of 32 bits per multiprocessor, at most 255 per thread"),
        _fact("Threads", told, "at most {threads_per_sm:,} per multiprocessor and {threads_per_block:,} per block; "
                               "{blocks_per_sm} blocks"),
        _fact("Warp size", told, "{warp} threads"),
    )
    return tuple(fact for fact in made if fact is not None)


def numbers_of(told: Mapping[str, Any]) -> dict[str, float]:
    """The driver's attributes under the names of ``gpu_facts`` numbers."""
    names = {"multiprocessors": "multiprocessors", "l2_bytes": "l2_bytes", "shared_bytes_per_block": "shared_optin",
             "warp": "warp"}
    return {name: told[source] for name, source in names.items() if isinstance(told.get(source), int)}


def roofs_of(name: str) -> tuple[Fact, ...]:
    """Roofs of the GPU ``name`` that an earlier evaluation measured here; empty before the first."""
    class_ = environment(Backend.TRITON, name).class_
    roofs, matmul = kept_roofs(class_), kept_matmul(class_)
    found = []
    if roofs is not None:
        text = f"copy {roofs.copy / 1e12:.2f} TB/s (read plus written), read {roofs.read / 1e12:.2f} TB/s"
        found.append(Fact("Measured memory roofs", text, "shares of the roof refer to these", MEASURED))
    if matmul is not None and matmul.flops is not None:
        found.append(Fact("Measured matmul roof", f"{matmul.flops / 1e12:.0f} TFLOP/s", matmul.origin, MEASURED))
    return tuple(found)


def _fact(name: str, told: Mapping[str, Any], pattern: str) -> Fact | None:
    try:
        return Fact(name, pattern.format_map(told), "", DRIVER)
    except (KeyError, ValueError, TypeError):
        return None
