"""Roofs of a GPU: memory rates measured by the launcher once per environment class, and the datasheet's matrix rate.

A roof is the best rate seen: a later measurement may raise what is kept and never lowers it. The matrix rate is the
datasheet's dense peak, which no kernel reaches: an upper bound, and named so; the one that is reached is ``matmul``'s.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from harness.domain.errors import InfrastructureError
from harness.hardware.roofs import var_folder

MATRIX_PEAK: dict[str, dict[str, float]] = {
    "nvidia-h200": {"bfloat16": 989e12, "float16": 989e12, "float32": 495e12},
    "nvidia-h100": {"bfloat16": 989e12, "float16": 989e12, "float32": 495e12},
    "nvidia-a100": {"bfloat16": 312e12, "float16": 312e12, "float32": 156e12},
}
"""Operations per second by device and dtype: NVIDIA's H200, H100 and A100 datasheets, without sparsity; float32 counts
at the TF32 rate, the fastest that its inputs allow."""
MEASUREMENTS = 3
"""Times that the launcher measures; the best counts."""


class Measurable(Protocol):
    """What measuring needs of a launcher (``launcher.client.Device``)."""

    def roofs(self) -> Mapping[str, float]:
        """``copy`` (bytes read plus written) and ``read`` rates, bytes per second."""
        ...


@dataclass(frozen=True, slots=True)
class DeviceRoofs:
    """Bytes per second of a copy (read plus written) and of reading alone, as measured."""

    copy: float
    read: float

    @property
    def bandwidth(self) -> float:
        """The fastest way through the device's memory, bytes per second."""
        return max(self.copy, self.read)

    def floor_s(self, moved: int, flops: int, peak: float | None) -> float:
        """Seconds below which no honest call can be; ``peak`` is ``matrix_peak``, ``None`` leaves arithmetic out."""
        return max(moved / self.bandwidth, flops / peak if peak else 0.0)

    def raised(self, other: DeviceRoofs) -> DeviceRoofs:
        """The better of both, rate by rate."""
        return DeviceRoofs(max(self.copy, other.copy), max(self.read, other.read))


def matrix_peak(device: str, dtype: str) -> float | None:
    """The datasheet's dense matrix rate in operations per second, ``None`` where it is not known here."""
    return MATRIX_PEAK.get(device, {}).get(dtype)


def device_roofs(device: Measurable, class_: str, *, afresh: bool = False) -> DeviceRoofs:
    """The roofs of environment class ``class_``: kept ones, or measured now through ``device``.

    ``afresh`` measures again and keeps the better: before a kernel is refused for having beaten them.

    Raises:
        InfrastructureError: the launcher measured nothing sensible.
    """
    path = _path(class_)
    kept = _kept(path)
    if kept is not None and not afresh:
        return kept
    measured = _measure(device)
    best = measured if kept is None else measured.raised(kept)
    with contextlib.suppress(OSError):  # without a place to keep it, it is measured again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(asdict(best)), "utf-8")
        partial.replace(path)
    return best


def kept_roofs(class_: str) -> DeviceRoofs | None:
    """The roofs that were measured for environment class ``class_``, ``None`` before that."""
    return _kept(_path(class_))


def _path(class_: str) -> Path:
    return var_folder() / "roofs" / f"{class_.replace('/', '_')}.json"


def _measure(device: Measurable) -> DeviceRoofs:
    found = [_sensible(device.roofs()) for _ in range(MEASUREMENTS)]
    best = found[0]
    for one in found[1:]:
        best = best.raised(one)
    return best


def _sensible(rates: Mapping[str, Any]) -> DeviceRoofs:
    try:
        roofs = DeviceRoofs(float(rates["copy"]), float(rates["read"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InfrastructureError(f"The launcher measured no memory rates: {error!r}. Nothing was timed.") from error
    if not 0.0 < roofs.copy < 1e15 or not 0.0 < roofs.read < 1e15:
        raise InfrastructureError(
            f"The launcher measured a copy at {roofs.copy:g} and reads at {roofs.read:g} bytes per second, which no "
            "device does. Nothing was timed."
        )
    return roofs


def _kept(path: Path) -> DeviceRoofs | None:
    with contextlib.suppress(OSError, ValueError, InfrastructureError):
        document = json.loads(path.read_text("utf-8"))
        return _sensible(document) if isinstance(document, dict) else None
    return None
