"""What binds a kernel, as rows: the profile of a verdict document. Its sentences come from where the figures do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]
BOUNDS = {
    "memory": ("server", "bound by memory"), "cache": ("copy", "bound by caches"),
    "compute": ("chip", "bound by arithmetic"), "latency": ("clock", "bound by latency"),
    "unknown": ("dash", "not clear"),
}
SHARES = (
    ("dram_share", "Device memory", "of its peak rate"),
    ("l2_share", "L2 cache", "of its peak rate"),
    ("sm_share", "Multiprocessors", "busiest unit or instruction issue"),
    ("tensor_share", "Matrix units", "of their peak rate"),
    ("l2_hit", "L2 hits", "of the requests"),
    ("occupancy_achieved", "Active warps", "of the slots, on average"),
    ("bank_conflicts", "Bank conflicts", "extra passes over shared memory"),
)
SOURCES = {"nsight-compute": "hardware counters", "launcher clock": "the launcher’s own clock"}


@dataclass(frozen=True, slots=True)
class Gauge:
    """A share of one as a bar; ``tick`` marks what resources would allow."""

    name: str
    of: str
    share: float
    tick: float | None


@dataclass(frozen=True, slots=True)
class LaunchSheet:
    """One launch: its bars, its stalls, and the figures that are no shares."""

    document: Document
    icon: str
    word: str
    gauges: tuple[Gauge, ...]


@dataclass(frozen=True, slots=True)
class ShapeSheet:
    """One shape with its sentence."""

    document: Document
    icon: str
    word: str
    launches: tuple[LaunchSheet, ...]


@dataclass(frozen=True, slots=True)
class ProfileSheet:
    """The whole profile; ``counted`` where hardware counters were read."""

    source: str
    tool: str
    why: str
    seconds: float | None
    counted: bool
    shapes: tuple[ShapeSheet, ...]


def profile_sheet(document: Document) -> ProfileSheet | None:
    """The profile of a verdict document; ``None`` where none was made (older documents, CPUs, refused kernels)."""
    profile = document.get("profile")
    if not profile:
        return None
    source = profile.get("source") or ""
    return ProfileSheet(
        SOURCES.get(source, source), profile.get("tool") or "", profile.get("why") or "", profile.get("seconds"),
        source == "nsight-compute", tuple(_shape(one) for one in profile.get("shapes") or ()))


def _shape(shape: Document) -> ShapeSheet:
    icon, word = BOUNDS.get(shape.get("bound") or "unknown", BOUNDS["unknown"])
    return ShapeSheet(shape, icon, word, tuple(_launch(one) for one in shape.get("launches") or ()))


def _launch(launch: Document) -> LaunchSheet:
    icon, word = BOUNDS.get(launch.get("bound") or "unknown", BOUNDS["unknown"])
    gauges = [Gauge(name, of, launch[key], launch.get("occupancy") if key == "occupancy_achieved" else None)
              for key, name, of in SHARES if launch.get(key) is not None]
    return LaunchSheet(launch, icon, word, tuple(gauges))
