"""Starts launcher processes and speaks with them; implements ``client.Device``."""

from __future__ import annotations

import base64
import contextlib
import mmap
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.backends.triton.launcher.binary import Binary
from harness.backends.triton.launcher.client import DeviceFault
from harness.backends.triton.launcher.refused import PlanRefused
from harness.backends.triton.launcher.requests import Apart, CallOutcome, DeviceInfo, RoundRequest, RoundResult
from harness.domain.codec import to_document
from harness.domain.errors import InfrastructureError
from harness.domain.plan import LaunchPlan
from harness.evaluation.ports import Lent
from harness.evaluation.sandbox import frames

ROOT = Path(__file__).resolve().parents[4]
START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from harness.backends.triton.launcher.program import main; main()"
)
START_S, SANITIZED_START_S = 30.0, 120.0
SLOPE_FACTOR = 4
KEPT = ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
"""What the driver needs of the environment; nothing else is passed on."""
SANITIZER = "compute-sanitizer"


class LauncherProcess:
    """One launcher; close it, or use it as a context."""

    def __init__(self, index: int = 0, *, sanitizer: str | None = None) -> None:
        """Start it on device ``index``, under a tool of compute-sanitizer where one is named.

        Raises:
            InfrastructureError: there is no driver or device, or the launcher does not start.
        """
        self._home = Path(tempfile.mkdtemp(prefix="kernelopt-launcher-"))
        ours, theirs = socket.socketpair()
        self._sock = ours
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment |= {"HOME": str(self._home), "TMPDIR": str(self._home), "CUDA_CACHE_PATH": str(self._home),
                        "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "LANG": "C.UTF-8"}
        command = [sys.executable, "-I", "-B", "-c", START, str(ROOT), str(theirs.fileno()), str(index),
                   "exact" if sanitizer else "guarded"]
        if sanitizer:
            # Without backtraces, which take seconds each; the launcher's own probing calls are no findings.
            command = [_sanitizer(), "--tool", sanitizer, "--log-file", str(self._home / "report"), "--print-limit",
                       "20", "--show-backtrace", "no", "--report-api-errors", "no", *command]
        with (self._home / "log").open("wb") as log:
            self._process = subprocess.Popen(
                command, env=environment, cwd=self._home, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=[theirs.fileno()], start_new_session=True,
            )
        theirs.close()
        self.opened = time.monotonic()
        try:
            ready, _ = frames.receive(ours, deadline=time.monotonic() + (SANITIZED_START_S if sanitizer else START_S))
        except frames.FrameError as error:
            words = self._last_words()
            self.close()
            raise InfrastructureError(f"The launcher did not start: {error}. Its last words: {words or 'none'}. "
                                      "Nothing was judged. Run 'python -m harness doctor'.") from error
        if "absent" in ready:
            self.close()
            raise InfrastructureError(f"There is no usable GPU {index} here: {ready['absent']}. Nothing was judged. "
                                      "Run 'python -m harness doctor'.")
        self.info = DeviceInfo(**ready["info"])
        self.start_s = float(ready["seconds"])

    def load(self, plan: LaunchPlan, binaries: Sequence[Binary]) -> int:
        """See ``client.Device.load``."""
        document = to_document(plan)
        document.pop("irs", None)
        rows = [{"symbol": b.symbol, "cubin": base64.b64encode(b.cubin).decode("ascii"), "num_warps": b.num_warps,
                 "num_ctas": b.num_ctas, "shared_bytes": b.shared_bytes} for b in binaries]
        return int(self._ask({"op": "load", "document": document, "binaries": rows}, timeout_s=30.0)["plan"])

    def call(self, handle: int, lent: Sequence[Lent], *, drop: int | None = None,
             timeout_s: float = 10.0) -> CallOutcome:
        """See ``client.Device.call``."""
        request = {"op": "call", "plan": handle, "arrays": [_array(item) for item in lent], "drop": drop,
                   "poison": secrets.randbits(16)}
        answer = self._ask(request, [item.fd for item in lent], timeout_s=timeout_s)
        return CallOutcome(tuple(answer["changed"]), float(answer["seconds"]))

    def round(self, request: RoundRequest, *, timeout_s: float = 30.0) -> RoundResult:
        """See ``client.Device.round``."""
        kept_counts = [[keep.count for keep in sweep.keeps] for sweep in request.sweeps]
        total = sum(map(sum, kept_counts))
        document = {
            "op": "round", "arrays": [_array(item) for item in request.arrays], "renewed": list(request.renewed),
            "factor_count": request.factor_count, "sides": dict(request.sides), "slots": request.slots,
            "spacer": request.spacer, "sweeps": [_sweep(sweep) for sweep in request.sweeps],
            "near": list(request.near), "compared": list(request.compared) if request.compared else None,
        }
        kept_fd = os.memfd_create("kept", os.MFD_CLOEXEC)
        try:
            os.ftruncate(kept_fd, max(1, total))
            fds = [request.factors, *(item.fd for item in request.arrays), kept_fd]
            answer = self._ask(document, fds, timeout_s=timeout_s)
            kept = _split(kept_fd, kept_counts, total)
        finally:
            os.close(kept_fd)
        slope, judged = self._slopes(request, timeout_s)
        self._ask({"op": "end_round"}, timeout_s=timeout_s)
        return RoundResult(
            us={name: tuple(values) for name, values in answer["us"].items()},
            late=tuple((name, number) for name, number in answer["late"]), kept=kept, slope=slope, judged=judged,
            empty_us=float(answer["empty_us"]), mhz=tuple(answer["mhz"]),
            apart=tuple(Apart(**{**row, "judged": float(row["judged"]), "trusted": float(row["trusted"])})
                        for row in answer["apart"]),
            written=tuple((name, number) for name, number in answer["written"]),
            strayed=tuple((name, number) for name, number in answer["strayed"]),
        )

    def _slopes(self, request: RoundRequest, timeout_s: float) -> tuple[dict[str, Any], dict[str, Any]]:
        """Wall-clock times of n and 4 n passes per side: by the launcher, and by the judge's own clock."""
        told: dict[str, Any] = {}
        judged: dict[str, Any] = {}
        for name in request.sides if request.slope else ():
            self._ask({"op": "slope", "side": name, "times": 1}, timeout_s=timeout_s)  # captures the graph
            rows = []
            for times in (request.slope, SLOPE_FACTOR * request.slope):
                began = time.perf_counter()
                answer = self._ask({"op": "slope", "side": name, "times": times}, timeout_s=timeout_s)
                seconds = time.perf_counter() - began
                rows.append(((answer["calls"], answer["seconds"]), (answer["calls"], seconds)))
            told[name] = tuple(row[0] for row in rows)
            judged[name] = tuple(row[1] for row in rows)
        return told, judged

    def healthy(self) -> bool:
        """See ``client.Device.healthy``."""
        try:
            return bool(self._ask({"op": "health"}, timeout_s=10.0)["healthy"])
        except (DeviceFault, PlanRefused):
            return False

    def roofs(self) -> Mapping[str, float]:
        """See ``client.Device.roofs``."""
        answer = self._ask({"op": "roofs"}, timeout_s=30.0)
        return {"copy": float(answer["copy"]), "read": float(answer["read"])}

    def report(self) -> str:
        """What the sanitizer wrote; complete once the launcher was closed by ``finish``."""
        return "\n".join(path.read_text("utf-8", "replace") for path in sorted(self._home.glob("report*")))

    def finish(self, timeout_s: float = 30.0) -> str:
        """Let the launcher end by itself, which a sanitizer needs to write its report; the report."""
        self._sock.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        text = self.report()
        self.close()
        return text

    def close(self) -> None:
        """See ``client.Device.close``."""
        self._sock.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._home, ignore_errors=True)

    def __enter__(self) -> LauncherProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, request: dict[str, Any], fds: Sequence[int] = (), *, timeout_s: float) -> dict[str, Any]:
        try:
            frames.send(self._sock, request, fds)
            answer, _ = frames.receive(self._sock, deadline=time.monotonic() + timeout_s)
        except frames.Late as error:
            self.close()
            raise DeviceFault("timeout", f"The device was not done after {timeout_s:g} s; it was stopped.") from error
        except (frames.FrameError, OSError) as error:
            words = self._last_words()
            self.close()
            raise DeviceFault("launcher_died", f"The launcher ended by itself: {error}. {words}".strip()) from error
        if "refused" in answer:
            raise PlanRefused(*answer["refused"])
        if "fault" in answer:
            code, text, dead = answer["fault"]
            raise DeviceFault(code, text, dead=dead)
        return answer

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = (self._home / "log").read_text("utf-8", "replace").strip().splitlines()
            return " | ".join(lines[-4:])[-600:]
        return ""


def open_device(index: int = 0, *, sanitizer: str | None = None) -> LauncherProcess:
    """A fresh launcher on device ``index``; ``sanitizer`` names a tool of compute-sanitizer to run it under.

    Raises:
        InfrastructureError: there is no driver or device, or the launcher does not start.
    """
    return LauncherProcess(index, sanitizer=sanitizer)


def _array(item: Lent) -> dict[str, Any]:
    return {"name": item.name, "kind": item.kind, "dtype": item.dtype, "shape": list(item.shape),
            "strides": list(item.strides), "offset": item.offset, "nbytes": item.nbytes}


def _sweep(sweep: Any) -> dict[str, Any]:
    keeps = [{"output": k.output, "slot": k.slot, "offset": k.offset, "count": k.count} for k in sweep.keeps]
    return {"slots": list(sweep.slots), "starts": list(sweep.starts), "order": list(sweep.order),
            "poison": sweep.poison, "kept_side": sweep.kept_side, "keeps": keeps, "flush": sweep.flush}


def _split(fd: int, counts: list[list[int]], total: int) -> tuple[tuple[bytes, ...], ...]:
    with mmap.mmap(fd, max(1, total)) as memory:
        place, rows = 0, []
        for row in counts:
            kept = []
            for count in row:
                kept.append(memory[place : place + count])
                place += count
            rows.append(tuple(kept))
        return tuple(rows)


def _sanitizer() -> str:
    found = shutil.which(SANITIZER)
    if found is None:
        raise InfrastructureError(f"{SANITIZER} is not installed here, so nothing was checked with it.")
    return found
