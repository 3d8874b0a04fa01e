"""The other side of the libraries' process: start it, ask it, end it, say whose fault an early end was. No torch."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.domain.errors import InfrastructureError
from harness.hardware.roofs import var_folder

ROOT = Path(__file__).resolve().parents[2]
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
"""glibc keeps freed memory: otherwise every output of a library's call on a CPU costs page faults, which a kernel that
fills given memory does not pay."""
START_S = 120.0
"""The longest that starting torch and the device may take, seconds."""


class LibraryDied(Exception):
    """The process ended or hung while it tried ``name`` (``None``: nothing in particular)."""

    def __init__(self, name: str | None, text: str) -> None:
        super().__init__(text)
        self.name, self.text = name, text


class LibraryProcess:
    """One process with one operator's libraries. Close it."""

    def __init__(self, request: dict[str, Any], told: Callable[[str], None] = lambda name: None) -> None:
        """Start it with the first ``request`` (see ``child.Libraries``); ``told`` hears what is tried.

        Raises:
            InfrastructureError: torch or the device does not start there.
        """
        self._told, self._trying = told, ""
        self._log = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - closed with the process
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **ALLOCATOR}
        environment.setdefault("TORCHINDUCTOR_CACHE_DIR", str(var_folder() / "inductor"))
        self._process = subprocess.Popen(
            [sys.executable, "-B", "-m", "harness.peers.child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._log, env=environment, cwd=tempfile.gettempdir(), start_new_session=True)
        self._rest = b""
        try:
            self.facts = self.ask(request, timeout_s=START_S)
        except LibraryDied as died:
            raise InfrastructureError(f"The libraries' process does not start: {died.text}") from died

    def ask(self, request: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
        """The answer to ``request``.

        Raises:
            LibraryDied: the process ended, or took longer than ``timeout_s``; it is closed then.
            InfrastructureError: it answers that it failed.
        """
        until = time.monotonic() + timeout_s
        self._trying = ""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._died("it was gone already") from error
        while True:
            answer = json.loads(self._line(until))
            if "trying" in answer:
                self._trying = str(answer["trying"])
                self._told(self._trying)
            elif "failed" in answer:
                raise InfrastructureError(f"The libraries' process failed: {answer['failed']}")
            else:
                return dict(answer)

    def _line(self, until: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise self._died("it did not answer in time")
            data = os.read(descriptor, 1 << 16)
            if not data:
                raise self._died("it ended by itself")
            self._rest += data
        line, self._rest = self._rest.split(b"\n", 1)
        return line

    def _died(self, how: str) -> LibraryDied:
        self.close()
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - 2000))
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        words = f" Its last words: {lines[-1][:300]}" if lines else ""
        doing = f" while '{self._trying}' was tried" if self._trying else ""
        return LibraryDied(self._trying or None, f"{how}{doing}.{words}")

    def close(self) -> None:
        """End the process and everything it started; idempotent."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def __enter__(self) -> LibraryProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
