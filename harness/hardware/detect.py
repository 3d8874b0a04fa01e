"""The device a figure belongs to: its name, its facts and the environment class."""

from __future__ import annotations

import functools
import platform
from importlib import metadata

from harness import EVALUATOR_VERSION
from harness.domain.verdict import Environment
from harness.domain.vocabulary import Backend
from harness.hardware.cores import reserve
from harness.hardware.cpu import CpuInfo, read_cpu

PACKAGES = {Backend.NUMBA: ("numba", "llvmlite", "numpy"), Backend.TRITON: ("triton", "torch")}


@functools.cache
def detect_cpu() -> CpuInfo:
    """This machine's processor."""
    return read_cpu()


def hardware_name() -> str:
    """``cpu-<vendor>-<family>-<threads>t``, for instance ``cpu-amd-26-1t``; threads are the cores of the clock."""
    cpu = detect_cpu()
    return f"cpu-{cpu.vendor}-{cpu.family}-{reserve().threads}t"


def environment(backend: Backend, device: str | None = None) -> Environment:
    """Where a verdict of ``backend`` is made here. Loads no compiler; versions come from package metadata.

    ``device`` names the GPU that judged it (``nvidia-h200``): then class and fields name GPU and driver, and the class
    is ``<device>/driver-<major>/<compiler>-<x.y>/eval-<version>``.
    """
    packages = {name: version(name) for name in PACKAGES[backend]}
    if device is not None:
        return _on_device(backend, device, packages)
    system = f"linux-{platform.release().partition('.')[0]}"
    compiler = PACKAGES[backend][0]
    short = ".".join(packages[compiler].split(".")[:2])
    device = hardware_name() if backend is Backend.NUMBA else "interpreter"
    return Environment(
        class_=f"{device}/{system}/{compiler}-{short}/eval-{EVALUATOR_VERSION}",
        cpu=detect_cpu().model, gpu=None, driver=None, python=platform.python_version(), packages=packages,
    )


def _on_device(backend: Backend, device: str, packages: dict[str, str]) -> Environment:
    from harness.hardware.gpu import card

    found = card()
    driver = found.driver if found else ""
    compiler = PACKAGES[backend][0]
    short = ".".join(packages[compiler].split(".")[:2])
    return Environment(
        class_=f"{device}/driver-{driver.partition('.')[0] or 'unknown'}/{compiler}-{short}/eval-{EVALUATOR_VERSION}",
        cpu=detect_cpu().model, gpu=found.title if found else None, driver=driver or None,
        python=platform.python_version(), packages=packages,
    )


@functools.cache
def version(package: str) -> str:
    """The installed version of ``package``, ``absent`` when it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"
