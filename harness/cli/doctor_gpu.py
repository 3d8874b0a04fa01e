"""What the doctor tries of a GPU: driver, device, and the tools that look into kernels. All of it may be absent."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from harness.cli.doctor_check import Check

DRY = "Triton campaigns are dry runs: checked and planned, not timed."
TOOL_S, NCU_S = 20.0, 60.0
CLOCK_ONLY = "Profiles come from the launcher's clock: times and shares of the roof, no counters."
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
    """The kernel profiler: found, and tried on a kernel where there is a GPU."""
    from harness.evaluation.profile import tool
    from harness.hardware.gpu import gpu_name

    place = tool.find()
    if place is None:
        return Check("ncu", False, "not found", CLOCK_ONLY,
                     "Install NVIDIA Nsight Compute and put 'ncu' on the worker's PATH.", optional=True)
    if gpu_name() is None:
        return Check("ncu", True, f"{place}, {tool.version(place)}; not tried, for there is no GPU here")
    try:
        report = tool.profiled({"index": 0, "calls": [], "trial": True}, timeout_s=NCU_S)
    except tool.NoCounters as none:
        return Check("ncu", False, f"{place}: {none.text}", CLOCK_ONLY, _remedy(none.code), optional=True)
    read = sum(name in report.rows[0].values for name in tool.METRICS)
    return Check("ncu", True, f"{place}, {report.tool}: {read} of {len(tool.METRICS)} metrics read on a trial kernel")


def gpu_matmul() -> Check:
    """The library whose products are the matmul roof."""
    from harness.hardware.gpu import gpu_name
    from harness.hardware.matmul import measured

    if gpu_name() is None:
        return Check("gpu matmul roof", True, "not measured, for there is no GPU here")
    found = measured()
    if found.flops is None:
        return Check("gpu matmul roof", False, found.origin,
                     "Shares of the matmul roof are missing; the datasheet's peak bounds arithmetic alone.",
                     "Install torch with CUDA or the CUDA toolkit: either brings libcublas.", optional=True)
    return Check("gpu matmul roof", True, f"{found.flops / 1e12:.0f} TFLOP/s ({found.origin})")


def _remedy(code: str) -> str:
    """What a person can do where a profiler read nothing."""
    from harness.evaluation.profile.tool import REMEDY

    if code == "not_permitted":
        return REMEDY
    return "Run 'ncu' on any CUDA program as the worker's user; its own message says what is missing."


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


TRIALS: tuple[Callable[[], Check], ...] = (gpu, device_files, gpu_matmul, compute_sanitizer, ncu)
