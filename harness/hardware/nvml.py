"""The driver's management library, where there is one: what a GPU is called and how it is doing. Changes no setting.

The only importer of ``pynvml``. Without a driver nothing is imported and nothing is known; without the package the
kernel module's own files under ``/proc`` still say which GPU this is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

NODE = Path("/dev/nvidiactl")
MODULE = Path("/proc/driver/nvidia")
VERSION = re.compile(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b")
T = TypeVar("T")

SLOWDOWNS = {0x8: "hardware slowdown", 0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown",
             0x80: "hardware power brake"}
"""Event reasons that spoil a measurement, by bit."""
POWER_CAP = 0x4
"""The software power cap: normal for large matrix products, so it is reported and spoils nothing."""
LAUNCHER = b"harness.backends.triton.launcher.program"
"""Names a launcher's process on its command line."""


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU as the driver lists it: ``title`` is its product name, ``driver`` a version such as ``580.95.05``.
    ``partitioned``: it is split into instances, so that nobody has the whole of it."""

    title: str
    driver: str
    uuid: str
    partitioned: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a GPU: MHz, watts, degrees Celsius, the bits of its event reasons, and the processes that compute on
    it. ``None`` is what this driver does not tell."""

    sm_mhz: int | None
    memory_mhz: int | None
    power_w: float | None
    celsius: int | None
    reasons: int
    processes: tuple[int, ...]

    @property
    def slowed(self) -> tuple[str, ...]:
        """Names of the slowdowns that are active."""
        return tuple(name for bit, name in SLOWDOWNS.items() if self.reasons & bit)

    @property
    def capped(self) -> bool:
        """Whether the power cap holds the clock down."""
        return bool(self.reasons & POWER_CAP)


@functools.cache
def library() -> Any | None:
    """``pynvml``, initialised, or ``None`` where driver, package or library is missing."""
    if not NODE.exists():
        return None
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # noqa: BLE001 - whatever is missing: management is a help, never a condition
        return None
    return pynvml


def cards() -> tuple[Card, ...]:
    """All GPUs in the order of the bus; empty without a driver."""
    if not NODE.exists():
        return ()
    nvml = library()
    if nvml is None:
        return _from_module()
    driver = _told(nvml.nvmlSystemGetDriverVersion) or ""
    found = []
    for index in range(_told(nvml.nvmlDeviceGetCount) or 0):
        handle = _told(nvml.nvmlDeviceGetHandleByIndex, index)
        title = _told(nvml.nvmlDeviceGetName, handle) if handle is not None else None
        if title:
            mode = _told(nvml.nvmlDeviceGetMigMode, handle) or (0, 0)
            found.append(Card(_text(title), _text(driver), _text(_told(nvml.nvmlDeviceGetUUID, handle) or ""),
                              partitioned=bool(mode[0])))
    return tuple(found)


def _from_module() -> tuple[Card, ...]:
    """What the kernel module tells in its own files, by bus address."""
    try:
        version = VERSION.search((MODULE / "version").read_text("utf-8", "replace"))
        texts = [path.read_text("utf-8", "replace") for path in sorted((MODULE / "gpus").glob("*/information"))]
    except OSError:
        return ()
    found = []
    for text in texts:
        known = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}
        if known.get("Model"):
            found.append(Card(known["Model"], version.group(1) if version else "", known.get("GPU UUID", "")))
    return tuple(found)


def read(uuid: str) -> Reading | None:
    """Look at the GPU ``uuid`` (with or without its ``GPU-`` and dashes); ``None`` where nobody can tell."""
    nvml = library()
    if nvml is None:
        return None
    handle = _told(nvml.nvmlDeviceGetHandleByUUID, written(uuid))
    if handle is None:
        return None
    reasons = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    value = _told(reasons, handle) if reasons else None
    if value is None:  # older drivers know them by their former name
        value = _told(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    power = _told(nvml.nvmlDeviceGetPowerUsage, handle)
    running = _told(nvml.nvmlDeviceGetComputeRunningProcesses, handle) or ()
    return Reading(
        sm_mhz=_told(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
        memory_mhz=_told(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
        power_w=None if power is None else power / 1000.0,
        celsius=_told(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
        reasons=int(value or 0), processes=tuple(sorted(int(process.pid) for process in running)),
    )


def written(uuid: str) -> str:
    """A UUID as the library writes it, ``GPU-8-4-4-4-12``; what is no UUID stays as it is."""
    digits = re.sub(r"[^0-9a-f]", "", uuid.lower().removeprefix("gpu-"))
    if len(digits) != 32:
        return uuid
    return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def strangers(processes: Iterable[int], own: int, proc: Path = Path("/proc")) -> int:
    """How many of ``processes`` neither are ``own`` nor descend from it. A launcher of another evaluation does not
    count: it is idle while somebody else holds the device's lock.

    Where the driver counts processes by numbers of another namespace they cannot be told apart; one of those is taken
    for our own launcher.
    """
    count = hidden = 0
    for pid in processes:
        line = _parents(pid, proc)
        hidden += not line
        count += bool(line) and own not in line and not _is_launcher(pid, proc)
    return count + max(hidden - 1, 0)


def _is_launcher(pid: int, proc: Path) -> bool:
    try:
        return LAUNCHER in (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


def _parents(pid: int, proc: Path) -> list[int]:
    """``pid`` and its ancestors; empty where it is not to be seen."""
    line: list[int] = []
    while pid > 1 and pid not in line:
        try:
            fields = (proc / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            break
        line.append(pid)
        pid = int(fields[1])
    return line


def _told(ask: Callable[..., T], *arguments: Any) -> T | None:
    """An answer of the library, ``None`` where this card or driver has none."""
    try:
        return ask(*arguments)
    except Exception:  # noqa: BLE001 - its errors are classes made at run time
        return None


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
