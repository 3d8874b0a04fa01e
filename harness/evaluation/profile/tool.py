"""Runs Nsight Compute around the program that repeats plans, and tells why where it cannot.

The profiled process holds no candidate: it loads what the compile process made of recorded plans. Clocks are left as
they are, caches are flushed before every launch.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.evaluation.profile.metrics import METRICS
from harness.evaluation.profile.table import Row, first_error, read_table

PROGRAM = "ncu"
PLACES = ("/usr/local/cuda/bin/ncu", "/usr/local/cuda-*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
ROOT = Path(__file__).resolve().parents[3]
START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from harness.backends.triton.launcher.replay import main; main()"
)
KEPT = ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
PROFILE_S = 120.0
NOT_PERMITTED = "ERR_NVGPUCTRPERM"
PERMISSION = "the driver lets administrators alone read performance counters (ERR_NVGPUCTRPERM)"
REMEDY = (
    "Load the nvidia kernel module with NVreg_RestrictProfilingToAdminUsers=0: put the line 'options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0' into a file in /etc/modprobe.d, rebuild the initial ramdisk where it holds "
    "the driver, and reboot. Or give the worker CAP_SYS_ADMIN (in a container: --cap-add=SYS_ADMIN)."
)
VERSION = re.compile(r"\b(\d{4}\.\d+\.\d+(?:\.\d+)?)\b")


class NoCounters(Exception):
    """There are no counters: ``code`` is ``absent``, ``not_permitted`` or ``failed``; ``text`` is why, as the end of a
    sentence."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


@dataclass(frozen=True, slots=True)
class Report:
    """Every launch of the program in order, and the profiler that saw them."""

    rows: tuple[Row, ...]
    tool: str


def find() -> Path | None:
    """The profiler, on the ``PATH`` or where its installers put it; of several versions the last."""
    known = shutil.which(PROGRAM)
    if known:
        return Path(known)
    for pattern in PLACES:
        found = sorted(Path("/").glob(pattern.lstrip("/")))
        if found:
            return found[-1]
    return None


def profiled(request: dict[str, Any], *, timeout_s: float = PROFILE_S) -> Report:
    """Counters of every launch that ``request`` (see ``launcher.replay``) asks for. The device has to be held.

    Raises:
        NoCounters: there is no profiler, it may not read counters, or it failed.
    """
    program = find()
    if program is None:
        raise NoCounters("absent", "Nsight Compute (ncu) is not installed on this host")
    with tempfile.TemporaryDirectory(prefix="kernelopt-profile-") as name:
        home = Path(name)
        asked, report = home / "request.json", home / "report.csv"
        asked.write_text(json.dumps(request), "utf-8")
        command = [str(program), *options(report), sys.executable, "-I", "-B", "-c", START, str(ROOT), str(asked)]
        out = _run(command, home, timeout_s)
        text = report.read_text("utf-8", "replace") if report.exists() else ""
        return understood(text, out, version(program))


def options(report: Path) -> list[str]:
    """What the profiler is told."""
    return ["--target-processes", "application-only", "--profile-from-start", "off", "--clock-control", "none",
            "--cache-control", "all", "--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(METRICS),
            "--log-file", str(report)]


def understood(report: str, out: str, tool: str) -> Report:
    """The rows of a report, one per launch that the program says it made.

    Raises:
        NoCounters: it has none, or others than the program launched.
    """
    if NOT_PERMITTED in report or NOT_PERMITTED in out:
        raise NoCounters("not_permitted", f"{PERMISSION}; 'python -m harness doctor' says how to permit it")
    answer = _answer(out)
    for word in ("fault", "refused"):
        if word in answer:
            raise NoCounters("failed", f"under the profiler {answer[word][1]}".rstrip("."))
    rows = read_table(report)
    error = first_error(report) or first_error(out)
    if not rows:
        raise NoCounters("failed", f"{tool} measured nothing{f': {error}' if error else ''}".rstrip("."))
    if len(rows) != answer.get("launches"):
        made = answer.get("launches", "no")
        raise NoCounters("failed", f"{tool} reports {len(rows)} launches where {made} were made")
    if not any(row.values for row in rows):
        raise NoCounters("failed", f"{tool} read no counter{f': {error}' if error else ''}".rstrip("."))
    return Report(rows, tool)


def version(program: Path) -> str:
    """``Nsight Compute`` with the version that the profiler prints."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run([str(program), "--version"], capture_output=True, text=True, timeout=20.0, check=True)
        found = VERSION.search(done.stdout)
        if found:
            return f"Nsight Compute {found.group(1)}"
    return "Nsight Compute"


def _answer(out: str) -> dict[str, Any]:
    """The program's own line among whatever else was printed."""
    for line in reversed(out.splitlines()):
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                return found
    return {}


def _run(command: Sequence[str], home: Path, timeout_s: float) -> str:
    """Everything that profiler and program printed. Raises ``NoCounters`` where they were late or did not start."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment |= {"HOME": str(home), "TMPDIR": str(home), "CUDA_CACHE_PATH": str(home),
                    "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "LANG": "C.UTF-8"}
    began = time.monotonic()
    try:
        process = subprocess.Popen(command, env=environment, cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
    except OSError as error:
        raise NoCounters("failed", f"{command[0]} does not start: {error}") from error
    try:
        out, _ = process.communicate(timeout=timeout_s)
        return out.decode("utf-8", "replace")
    except subprocess.TimeoutExpired as late:
        text = f"the profiler was not done after {time.monotonic() - began:.0f} s"
        raise NoCounters("failed", text) from late
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
