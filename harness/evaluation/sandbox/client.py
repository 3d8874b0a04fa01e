"""The judge's side of a warm server: start it, ask it for candidate processes, end it with this process."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from harness.domain.errors import InfrastructureError
from harness.evaluation.sandbox import cgroup, frames, linux, removal, walls
from harness.evaluation.sandbox.modes import SINGLE_THREADED, Mode
from harness.hardware.cores import reserve

PACKAGE_ROOT = Path(__file__).resolve().parents[3]
START_S = 60.0
PREFIX = "kernelopt-sandbox-"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}


class Forked(NamedTuple):
    """The judge's ends of one candidate process: its keeper, itself, its folder, its control group if it has one."""

    control: socket.socket
    channel: socket.socket
    tmp: str
    group: cgroup.Group | None


class ServerClient:
    """One warm server. ``jail`` and ``own_uid`` say what it could set up; ``trouble`` why not."""

    def __init__(self, mode: Mode, *, namespaces: bool = True) -> None:
        """Start the server and wait until it is warm; without ``namespaces`` it does not try to build any.

        Raises:
            InfrastructureError: it did not become warm within a minute, with the last of its output.
        """
        self.mode = mode
        self._lock = threading.Lock()
        with contextlib.suppress(OSError):  # nothing of a process that judges is for processes of the same user
            linux.prctl(linux.PR_SET_DUMPABLE, 0)
        sweep()
        self._home = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
        Path(self._home).chmod(0o711)
        ours, theirs = socket.socketpair()
        self._sock = ours
        environment = {
            **ENVIRONMENT, **SINGLE_THREADED, "NUMBA_NUM_THREADS": str(reserve().threads), **mode.environment,
            "HOME": self._home, "TMPDIR": self._home, "XDG_CACHE_HOME": self._home, "NUMBA_CACHE_DIR": self._home,
        }
        command = [
            sys.executable, "-I", "-B", str(Path(__file__).with_name("bootstrap.py")),
            str(PACKAGE_ROOT), mode.module, str(theirs.fileno()), self._home if namespaces else "",
        ]
        with Path(self._home, "server.log").open("wb") as log:
            self.process = subprocess.Popen(
                command, env=environment, cwd=self._home, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=[theirs.fileno()], start_new_session=True,
            )
        theirs.close()
        atexit.register(self.close)
        try:
            ready, _ = frames.receive(ours, deadline=time.monotonic() + START_S)
        except frames.FrameError as error:
            text = self._last_words()
            self.close()
            raise InfrastructureError(
                f"The sandbox server for '{mode.name}' did not start: {error}. Its last words: {text or 'none'}. "
                "Run 'python -m harness doctor'."
            ) from error
        ours.settimeout(None)
        self.jail: bool = ready["jail"]
        self.own_uid: bool = ready["uid"]
        self.threads_at_fork: int = ready["threads"]
        self.trouble: str = ready["trouble"]

    @property
    def alive(self) -> bool:
        """Whether the server still runs."""
        return self.process.poll() is None

    def fork(self, asked: dict[str, object]) -> Forked:
        """Ask for one candidate process.

        Raises:
            InfrastructureError: the server is gone.
        """
        control, their_control = socket.socketpair()
        channel, their_channel = socket.socketpair()
        tmp = tempfile.mkdtemp(prefix="candidate-", dir=self._home)
        document = {"data_bytes": self.mode.data_bytes, "tmp": tmp, **asked}
        group = cgroup.candidate_group(document["data_bytes"], walls.PROCESSES)  # type: ignore[arg-type]
        procs = [group.procs] if group is not None else []
        try:
            with self._lock:
                frames.send(self._sock, document, [their_control.fileno(), their_channel.fileno(), *procs])
        except frames.FrameError as error:
            if group is not None:
                group.remove()
            control.close()
            channel.close()
            raise InfrastructureError(f"The sandbox server for '{self.mode.name}' is gone: {error}.") from error
        finally:
            their_control.close()
            their_channel.close()
        return Forked(control, channel, tmp, group)

    def close(self) -> None:
        """End the server; idempotent. Keepers end their candidates when their own sockets close."""
        atexit.unregister(self.close)
        self._sock.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        removal.remove(self._home)

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = Path(self._home, "server.log").read_text("utf-8", "replace").strip().splitlines()
            return " | ".join(lines[-4:])[-600:]
        return ""


def sweep() -> None:
    """Remove the folders and control groups of servers whose judge was killed before it could."""
    cgroup.sweep()
    for path in Path(tempfile.gettempdir()).glob(PREFIX + "*-*"):
        owner = path.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            removal.remove(str(path))
