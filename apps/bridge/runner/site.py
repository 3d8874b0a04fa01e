"""What ``serve`` starts and the conditions for it: port, lock, cores, readiness."""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

from apps.bridge import api
from apps.bridge.runner.supervisor import ChildSpec
from harness.hardware.cores import OVERRIDE, allowed, reserve

LANES, LANE_CORES = 2, 4
"""Workers of one GPU at most, and the cores that each of them needs beside the others'."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class CannotServe(Exception):
    """The site cannot start; the sentence says why and what to do."""


def hold_lock(path: Path, what: str) -> IO[str]:
    """Take the lock file ``path`` for as long as the returned file stays open; the kernel frees it at any death.

    Raises:
        CannotServe: another living process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise CannotServe(f"{what} already runs here (process {holder}, lock {path}). End that one first.") from None
    file.seek(0)
    file.truncate()
    file.write(str(os.getpid()))
    file.flush()
    return file


def check_port(host: str, port: int) -> None:
    """Whether ``host:port`` is free, asked before anything is started.

    Raises:
        CannotServe: the port is taken or the address is not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else "ports are numbers from 0 to 65535"
            raise CannotServe(f"Port {port} on {host} cannot be used: {why}. "
                              "Choose another one with --port (make run PORT=8001).") from None


def announce_cores() -> frozenset[int]:
    """Tell the children which cores there are, so that all name the hardware alike however they are pinned, and
    answer those that timing leaves free."""
    os.environ.setdefault(OVERRIDE, ",".join(map(str, allowed())))
    return frozenset(reserve().rest)


def lanes_of(device: str, cores: int) -> int:
    """How many workers serve ``device``: on a GPU one prepares and judges on processors while the other has the device,
    which the machine's lock gives to one of them at a time. A CPU is its own device."""
    return max(1, min(LANES, cores // LANE_CORES)) if device.startswith("nvidia-") else 1


def child_specs(*, host: str, port: int, manage: Path) -> list[ChildSpec]:
    """The children of ``serve``: web, engine and evaluation workers, kept off the cores that timed kernels have to
    themselves.

    Workers of a GPU have all cores: they record, compile and compare on as many processes as there are cores, and their
    clock is the device's. A CPU kernel timed meanwhile runs ahead of them, and rounds that they disturb are repeated.
    """
    python, quiet = sys.executable, announce_cores()
    worker, every = (python, str(manage), "evalworker"), frozenset(allowed())
    cores = len(every)
    lanes = [(device.name, lane) for device in api.devices_here()[1:] for lane in range(lanes_of(device.name, cores))]
    return [
        ChildSpec("web", (python, "-m", "daphne", "-v", "0", "-b", host, "-p", str(port),
                          "kernelopt_site.asgi:application"), quiet),
        ChildSpec("engine", (python, str(manage), "engine"), quiet, keys=True),
        ChildSpec("evalworker", worker, quiet),
        *(ChildSpec(worker_name(name, lane + 1), (*worker, "--hardware", name, *_lane_option(lane + 1)), every)
          for name, lane in lanes),
    ]


def worker_name(device: str, lane: int = 1) -> str:
    """The name that the worker of a device and lane reports under."""
    return f"evalworker:{device}" if lane == 1 else f"evalworker:{device}:{lane}"


def _lane_option(lane: int) -> tuple[str, ...]:
    return () if lane == 1 else ("--lane", str(lane))


def answers(url: str) -> bool:
    """Whether the site answers at ``url`` at all; an error page is an answer too."""
    try:
        with urllib.request.urlopen(url, timeout=2.0) as response:
            return response.status < 500
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
