"""Printing a benchmark's rows with their spread and the machine they belong to."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path


def print_table(title: str, unit: str, rows: Sequence[tuple[str, Sequence[float], float | None]]) -> None:
    """``rows`` are (name, measurements, budget or None) in ``unit``; medians with min, max and n."""
    print(f"\n{title} ({unit})")
    print(f"{'what':44} {'median':>9} {'min':>9} {'max':>9} {'n':>4} {'budget':>8}")
    for name, values, budget in rows:
        limit = "" if budget is None else f"{budget:g}"
        if not values:
            print(f"{name:44} {'not measured':>9}")
            continue
        print(f"{name:44} {statistics.median(values):9.3f} {min(values):9.3f} {max(values):9.3f} "
              f"{len(values):4d} {limit:>8}")


def print_machine(*packages: str) -> None:
    """CPU, Python and package versions, so that a figure is never without its machine."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    print(f"\n{cpu()}, {platform.system()} {platform.release()}, Python {platform.python_version()}, {versions}")


def cpu() -> str:
    """The processor and its cores, as the system names them."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown CPU")
    return f"{name}, {os.cpu_count()} cores"
