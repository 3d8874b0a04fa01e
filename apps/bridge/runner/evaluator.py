"""The evaluator as the worker sees it: a warm child process, a private folder, progress in, verdict out.

The child is ``python -m harness evaluate --serve``. It knows no database, no settings and no credentials; requests
and answers are files in a folder of its own, named line by line on its standard input. What it prints and writes is
read as data from an untrusted program. It is ended, with everything it started, on a lost lease, a cancelled job,
a missed deadline, when it has grown, and when this object is closed.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from apps.bridge.runner.processes import dies_with_parent, end_tree
from apps.bridge.runner.responses import Response, ResponseInvalid, read_response
from harness.hardware.cores import allowed
from harness.hardware.exclusive import FOLDER, lock_folder

START_ALLOWANCE_S = 60.0
TICK_S = 0.25
LINE_LIMIT = 64 * 1024
STDERR_SHOWN = 2000
EVALUATIONS_PER_CHILD = 100
GROWN_BYTES = 900 * 1024 * 1024
"""Memory of its own that a child may gain after its first evaluation; what libraries take is not growth."""
PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "CUDA_HOME",
             "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "KERNELOPT_VAR", "KERNELOPT_CORES",
             "KERNELOPT_CGROUP")
PASSED_ON_PREFIX = "HARNESS_"


class Abandoned(Exception):
    """Raised by a tick to end an evaluation at once: the lease is lost, the job was cancelled, the worker stops."""


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """One line of the child's progress."""

    stage: str
    done: int
    total: int
    text: str


def default_command() -> list[str]:
    """The evaluator's command line."""
    return [sys.executable, "-m", "harness", "evaluate", "--serve"]


def clean_environment(home: Path) -> dict[str, str]:
    """The child's whole environment: search paths and locale, a private home, nothing of the web application."""
    kept = {name: value for name, value in os.environ.items()
            if name in PASSED_ON or name.startswith(PASSED_ON_PREFIX)}
    return kept | {"HOME": str(home), "TMPDIR": str(home), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1",
                   FOLDER: lock_folder()}  # its temporary folder is private, a device's lock is everybody's


class Evaluator:
    """At most one child at a time, started when first needed. Not for use by several threads."""

    def __init__(self, *, project: Path, command: Sequence[str] | None = None,
                 start_allowance_s: float = START_ALLOWANCE_S, on_closed: Callable[[], None] = lambda: None) -> None:
        self._project = project
        self._command = list(command or default_command())
        self._allowance = start_allowance_s
        self._on_closed = on_closed  # whoever adopts orphans ends those of the child here
        self._child: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._pending = b""
        self._answered = 0
        self._first_bytes = 0

    @property
    def pid(self) -> int | None:
        """The child's process number while one is alive."""
        return self._child.pid if self._child is not None and self._child.poll() is None else None

    def evaluate(self, request: dict[str, Any], *, on_progress: Callable[[ProgressLine], None],
                 on_tick: Callable[[], None]) -> Response:
        """Judge ``request`` (a request document) and hand back the checked response.

        ``on_tick`` is called about four times a second; whatever it raises ends the child and is raised again.

        Raises:
            ResponseInvalid: no usable verdict came back; the sentence says why.
        """
        self._renew_when_worn()
        limit = float(request["deadline_s"]) + self._allowance
        try:
            child, room = self._running()
            asked, answered = room / "request.json", room / "response.json"
            asked.write_text(json.dumps(request), "utf-8")
            self._send(child, {"request": str(asked), "response": str(answered)})
            said = self._follow(child, str(answered), limit, on_progress, on_tick)
            self._answered += 1
            response = read_response(answered, request)
        except ResponseInvalid as invalid:
            words = self._last_words()
            self.close()
            raise ResponseInvalid(f"{invalid}{words}") from invalid
        except BaseException:
            self.close()
            raise
        if self._answered == 1:
            self._first_bytes = self._own_bytes()
        self._clear(room)
        if said.get("text"):
            raise ResponseInvalid(f"The evaluator refused the request: {said['text']}")
        return response

    def close(self) -> None:
        """End the child with everything it started and remove its folder; idempotent."""
        if self._child is not None:
            end_tree(self._child.pid)
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            self._child = None
            self._on_closed()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
        self._pending, self._answered = b"", 0

    def _running(self) -> tuple[subprocess.Popen[bytes], Path]:
        if self._child is None or self._child.poll() is not None:
            self.close()
            self._folder = tempfile.TemporaryDirectory(prefix="kernelopt-evaluator-", ignore_cleanup_errors=True)
            home = Path(self._folder.name)
            die_with_us, cores = dies_with_parent(), allowed()

            def prepare() -> None:
                die_with_us()
                os.sched_setaffinity(0, cores)  # the evaluator divides the cores itself, whatever this process got

            with (home / "stderr.txt").open("wb") as errors:
                self._child = subprocess.Popen(
                    self._command, cwd=self._project, env=clean_environment(home), stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=errors, start_new_session=True, preexec_fn=prepare)
            os.set_blocking(self._child.stdout.fileno(), False)  # type: ignore[union-attr]
        assert self._folder is not None
        room = Path(self._folder.name) / f"evaluation-{uuid.uuid4().hex}"
        room.mkdir(mode=0o700)
        return self._child, room

    def _send(self, child: subprocess.Popen[bytes], line: dict[str, str]) -> None:
        assert child.stdin is not None
        try:
            child.stdin.write(json.dumps(line).encode() + b"\n")
            child.stdin.flush()
        except OSError:
            raise ResponseInvalid("The evaluator ended before it could be asked.") from None

    def _follow(self, child: subprocess.Popen[bytes], answered: str, limit: float,
                on_progress: Callable[[ProgressLine], None], on_tick: Callable[[], None]) -> dict[str, Any]:
        """Read the child's output until it says that ``answered`` is written; that line's document is the result."""
        assert child.stdout is not None
        deadline = time.monotonic() + limit
        with selectors.DefaultSelector() as ready:
            ready.register(child.stdout, selectors.EVENT_READ)
            while True:
                on_tick()
                if time.monotonic() > deadline:
                    raise ResponseInvalid(f"The evaluator did not answer within {limit:.0f} s and was ended.")
                if not ready.select(TICK_S):
                    continue
                chunk = child.stdout.read(LINE_LIMIT)
                if chunk == b"":
                    raise ResponseInvalid(f"The evaluator {_how_it_ended(child)}.")
                *lines, rest = (self._pending + (chunk or b"")).split(b"\n")
                self._pending = rest[-LINE_LIMIT:]
                for line in lines:
                    document = _document(line)
                    if document.get("done") == answered:
                        return document
                    progress = read_progress(document)
                    if progress is not None:
                        on_progress(progress)

    def _renew_when_worn(self) -> None:
        """A child that judged many kernels or has grown is replaced between two evaluations."""
        if self.pid is None:
            return
        grown = self._own_bytes() > self._first_bytes + GROWN_BYTES
        if grown or self._answered >= EVALUATIONS_PER_CHILD:
            self.close()

    def _own_bytes(self) -> int:
        """Resident memory of the child that is shared with nobody; 0 where it has ended."""
        try:
            memory = psutil.Process(self.pid).memory_info()
        except psutil.Error:
            return 0
        return int(memory.rss - memory.shared)

    def _last_words(self) -> str:
        if self._folder is None:
            return ""
        try:
            tail = (Path(self._folder.name) / "stderr.txt").read_bytes()[-STDERR_SHOWN:]
        except OSError:
            return ""
        words = tail.decode("utf-8", "replace").strip()
        return f" Its last words: {words}" if words else ""

    @staticmethod
    def _clear(room: Path) -> None:
        for file in room.iterdir():
            file.unlink(missing_ok=True)
        room.rmdir()


def _how_it_ended(child: subprocess.Popen[bytes]) -> str:
    try:
        code = child.wait(1.0)
    except subprocess.TimeoutExpired:
        return "closed its output without an answer"
    return f"was killed by signal {-code}" if code < 0 else f"ended with code {code} without an answer"


def _document(line: bytes) -> dict[str, Any]:
    """The JSON object of a line; anything else (libraries may print) is an empty one."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def read_progress(document: dict[str, Any]) -> ProgressLine | None:
    """The progress that a line's document holds, ``None`` where it is something else."""
    try:
        return ProgressLine(stage=str(document["stage"])[:40], done=int(document.get("done", 0)),
                            total=int(document.get("total", 0)), text=str(document.get("text", ""))[:300])
    except (ValueError, TypeError, KeyError):
        return None
