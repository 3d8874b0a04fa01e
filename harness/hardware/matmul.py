"""The matmul roof of a GPU: the fastest large bfloat16 product that the vendor's library reaches here, measured once
per environment class in a program of its own and kept.

Like the memory roofs it never falls. Where it cannot be measured the datasheet's peak stands alone, and is named so:
that peak stays the bound of what is possible in any case.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.hardware import nvml
from harness.hardware.roofs import var_folder

PROGRAM = Path(__file__).with_name("matmul_program.py")
MEASURE_S = 60.0
KEPT = ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
MOST_FLOPS = 1e17
"""No device multiplies faster: a rate beyond is a fault of the measurement."""
HALVES = ("bfloat16", "float16")
"""Dtypes that matrix units multiply at the measured rate."""


@dataclass(frozen=True, slots=True)
class MatmulRoof:
    """``flops`` per second and where they come from; ``None`` with the reason where nothing was measured."""

    flops: float | None
    origin: str

    def rate(self, dtype: str) -> float | None:
        """Operations per second for products of ``dtype``; ``None`` where it was not measured."""
        return self.flops if dtype in HALVES else None


def matmul_roof(class_: str, *, afresh: bool = False, measure: Callable[[], MatmulRoof] | None = None) -> MatmulRoof:
    """The kept roof of environment class ``class_``, else one measured now; the device has to be held.

    ``afresh`` measures again and keeps the better, before anybody is suspected for having beaten it.
    """
    path = _path(class_)
    kept = _kept(path)
    if kept is not None and kept.flops is not None and not afresh:
        return kept
    found = (measure or measured)()
    if kept is not None and (found.flops or 0.0) <= (kept.flops or 0.0):
        return kept
    if found.flops is not None:
        with contextlib.suppress(OSError):  # without a place to keep it, it is measured again next time
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_text(json.dumps(asdict(found)), "utf-8")
            partial.replace(path)
    return found


def kept_matmul(class_: str) -> MatmulRoof | None:
    """The roof that was measured for environment class ``class_``, ``None`` before that."""
    return _kept(_path(class_))


def _path(class_: str) -> Path:
    return var_folder() / "roofs" / f"{class_.replace('/', '_')}.matmul.json"


def measured(index: int = 0) -> MatmulRoof:
    """Measure on device ``index`` in a fresh process. Never raises: a roof is a help, not a condition."""
    if not nvml.NODE.exists():
        return MatmulRoof(None, "there is no NVIDIA driver here")
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-B", str(PROGRAM), json.dumps({"index": index})], capture_output=True, text=True,
            env=environment | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, timeout=MEASURE_S, check=True,
        )
        return read_answer(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return MatmulRoof(None, f"the measuring program failed: {error}")


def read_answer(answer: Any) -> MatmulRoof:
    """The program's answer, or an earlier one that was kept. Raises ``ValueError`` where it makes no sense."""
    if not isinstance(answer, dict):
        raise ValueError("its answer is no object")
    if "absent" in answer:
        return MatmulRoof(None, str(answer["absent"]))
    flops = answer.get("flops")
    if isinstance(flops, bool) or not isinstance(flops, int | float) or not 0.0 < flops < MOST_FLOPS:
        raise ValueError(f"it measured {flops!r} operations per second")
    return MatmulRoof(float(flops), str(answer.get("origin", "unknown")))


def _kept(path: Path) -> MatmulRoof | None:
    with contextlib.suppress(OSError, ValueError):
        return read_answer(json.loads(path.read_text("utf-8")))
    return None
