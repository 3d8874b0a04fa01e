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
        except OSError as error:
            raise CannotServe(f"Port {port} on {host} cannot be used: {error.strerror}. "
                              "Choose another one with --port (make run PORT=8001).") from None


def announce_cores() -> frozenset[int]:
    """Tell the children which cores there are, so that all name the hardware alike however they are pinned, and
    answer those that timing leaves free."""
    os.environ.setdefault(OVERRIDE, ",".join(map(str, allowed())))
    return frozenset(reserve().rest)


def child_specs(*, host: str, port: int, manage: Path) -> list[ChildSpec]:
    """The children of ``serve``: web, engine and an evaluation worker per device, kept off the cores that timed kernels
    have to themselves."""
    python, quiet = sys.executable, announce_cores()
    return [
        ChildSpec("web", (python, "-m", "daphne", "-v", "0", "-b", host, "-p", str(port),
                          "kernelopt_site.asgi:application"), quiet),
        ChildSpec("engine", (python, str(manage), "engine"), quiet),
        ChildSpec("evalworker", (python, str(manage), "evalworker"), quiet),
        *(ChildSpec(f"evalworker:{device.name}", (python, str(manage), "evalworker", "--hardware", device.name), quiet)
          for device in api.devices_here()[1:]),
    ]


def answers(url: str) -> bool:
    """Whether the site answers at ``url`` at all; an error page is an answer too."""
    try:
        with urllib.request.urlopen(url, timeout=2.0) as response:
            return response.status < 500
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
