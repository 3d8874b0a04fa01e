"""Which GPU this host has for evaluations. Loads neither torch nor triton, and costs nothing without a driver."""

from __future__ import annotations

import ctypes
import functools
import os
import re

from harness.hardware import nvml

VISIBLE = "CUDA_VISIBLE_DEVICES"
KNOWN = {"NVIDIA H200": "nvidia-h200", "NVIDIA H100 80GB HBM3": "nvidia-h100", "NVIDIA A100-SXM4-80GB": "nvidia-a100"}
"""Product names of the boards that plans are compiled for; relatives of theirs (another form factor, less memory) are
other hardware and keep their own names."""


def present(name: str) -> bool:
    """Whether this host's GPU is ``name`` and kernels can be launched on it."""
    return name.startswith("nvidia-") and gpu_name() == name


def gpu_name() -> str | None:
    """The name of the GPU that evaluations use here, ``nvidia-h200`` for instance; ``None`` where there is none."""
    found = card()
    return None if found is None else name_of(found)


def name_of(found: nvml.Card) -> str:
    """The hardware's name of a card. A card split into instances is another hardware."""
    plain = KNOWN.get(found.title) or "nvidia-" + re.sub(
        r"[^a-z0-9]+", "-", found.title.lower().removeprefix("nvidia")).strip("-")
    return f"{plain}-partitioned" if found.partitioned else plain


def card() -> nvml.Card | None:
    """The first GPU that this process may use, ``None`` where there is none or the CUDA driver cannot be loaded."""
    found = nvml.cards()
    if not found or not _launches():
        return None
    return visible(found, os.environ.get(VISIBLE))


def visible(found: tuple[nvml.Card, ...], setting: str | None) -> nvml.Card | None:
    """The first of ``found`` that ``CUDA_VISIBLE_DEVICES`` (``setting``) leaves: a number or a UUID comes first in it;
    empty or ``-1`` leaves none."""
    if setting is None:
        return found[0]
    first = setting.split(",")[0].strip()
    if first.isdigit():
        return found[int(first)] if int(first) < len(found) else None
    wanted = nvml.written(first)
    return next((one for one in found if first.startswith("GPU-") and nvml.written(one.uuid).startswith(wanted)), None)


@functools.cache
def _launches() -> bool:
    """Whether the CUDA driver's library is here: some containers are given the management library alone."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
