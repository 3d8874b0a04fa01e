"""What the doctor tries of a GPU: driver, device, and the tools that look into kernels. All of it may be absent."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from harness.cli.doctor_check import Check

DRY = "Triton campaigns are dry runs: checked and planned, not timed."
TOOL_S = 20.0
PLACES = "/usr/local/cuda/bin:/opt/nvidia/nsight-compute"


def gpu() -> Check:
    """Driver and device."""
    from harness.hardware import gpu as found
    from harness.hardware import nvml

    cards = nvml.cards()
    if not cards:
        loaded = Path("/proc/driver/nvidia/version").exists()
        text = "an NVIDIA driver is loaded, but shows no device here" if loaded else "no NVIDIA driver"
        remedy = ("Give the worker its device files (/dev/nvidia*) and the management library." if loaded else
                  "Run the exported requests on a host with a GPU.")
        return Check("gpu", False, text, DRY, remedy, optional=True)
    names = ", ".join(f"{card.title}{' (partitioned)' if card.partitioned else ''}" for card in cards)
    text = f"{names}, driver {cards[0].driver}"
    name = found.gpu_name()
    if name is None:
        return Check("gpu", False, text, "No kernel can be launched: the CUDA driver's library or a visible device is "
                     "missing. " + DRY, "Make libcuda.so.1 loadable and check CUDA_VISIBLE_DEVICES.", optional=True)
    return Check("gpu", True, f"{text}; evaluations use {name}")


def device_files() -> Check:
    """Whether this user may open the device."""
    from harness.evaluation.sandbox.walls import gpu_devices

    devices = gpu_devices()
    if not devices:
        return Check("gpu device files", False, "no /dev/nvidia* here", DRY,
                     "Nothing, unless this machine has a GPU: then give the worker its device files.", optional=True)
    closed = [path for path in devices if not _opens(path)]
    if closed:
        return Check("gpu device files", False, f"{', '.join(closed)} cannot be opened", DRY,
                     "Let the worker's user read and write them.", optional=True)
    return Check("gpu device files", True, ", ".join(devices))


def compute_sanitizer() -> Check:
    """The tool that finds races and stray accesses on the device."""
    return _tool("compute-sanitizer", "Verdicts say that the sanitizer tier did not run.",
                 "Install the CUDA toolkit's compute-sanitizer and put it on the worker's PATH.")


def ncu() -> Check:
    """The kernel profiler."""
    return _tool("ncu", "Timings are held against the judge's clock and the roofs, not against a profiler.",
                 "Install NVIDIA Nsight Compute, put 'ncu' on the worker's PATH and permit performance counters.")


def _opens(path: str) -> bool:
    try:
        with Path(path).open("r+b", buffering=0):
            return True
    except OSError:
        return False


def _tool(name: str, means: str, remedy: str) -> Check:
    """Start a tool once and take the version that it prints."""
    place = shutil.which(name) or shutil.which(name, path=PLACES)
    if place is None:
        return Check(name, False, "not found", means, remedy, optional=True)
    try:
        done = subprocess.run([place, "--version"], capture_output=True, text=True, timeout=TOOL_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Check(name, False, f"{place} does not start: {error}", means, remedy, optional=True)
    version = next((line.strip() for line in done.stdout.splitlines() if "ersion" in line), "")
    if shutil.which(name) is None:
        return Check(name, False, f"{place} ({version}) is not on the PATH", means,
                     f"Add {Path(place).parent} to the PATH.", optional=True)
    return Check(name, True, f"{place} {version}".strip())


TRIALS: tuple[Callable[[], Check], ...] = (gpu, device_files, compute_sanitizer, ncu)
