"""One evaluation in a child process: private folder, clean environment, progress in, verdict out, tree ended.

The child is ``python -m harness evaluate --request r.json --response v.json``. It knows no database, no settings
and no credentials. What it prints and writes is read as data from an untrusted program.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.bridge.runner.processes import dies_with_parent, end_tree
from apps.bridge.runner.responses import Response, ResponseInvalid, read_response

START_ALLOWANCE_S = 60.0
TICK_S = 0.25
LINE_LIMIT = 64 * 1024
STDERR_SHOWN = 2000
PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "CUDA_HOME",
             "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "XDG_CACHE_HOME")
PASSED_ON_PREFIX = "HARNESS_"


class Abandoned(Exception):
    """Raised by a tick to end the child at once: the lease is lost, the job was cancelled, the worker shuts down."""


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """One line of the child's progress."""

    stage: str
    done: int
    total: int
    text: str


def default_command() -> list[str]:
    """The evaluator's command line without its two path options."""
    return [sys.executable, "-m", "harness", "evaluate"]


def clean_environment(home: Path) -> dict[str, str]:
    """The child's whole environment: search paths and locale, a private home, nothing of the web application."""
    kept = {name: value for name, value in os.environ.items()
            if name in PASSED_ON or name.startswith(PASSED_ON_PREFIX)}
    return kept | {"HOME": str(home), "TMPDIR": str(home), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def run_evaluation(*, request: dict[str, Any], command: Sequence[str], project: Path,
                   on_progress: Callable[[ProgressLine], None], on_tick: Callable[[], None]) -> Response:
    """Evaluate ``request`` in a child and hand back its checked response.

    ``on_tick`` is called about four times a second; whatever it raises ends the child's tree and is raised again.
    ``on_progress`` gets every well-formed progress line.

    Raises:
        ResponseInvalid: no usable verdict came back; the sentence says why. The child's tree is gone by then.
    """
    with tempfile.TemporaryDirectory(prefix="kernelopt-evaluation-", ignore_cleanup_errors=True) as folder:
        room = Path(folder)
        asked, answered, errors = room / "request.json", room / "response.json", room / "stderr.txt"
        asked.write_text(json.dumps(request), "utf-8")
        limit = float(request["deadline_s"]) + START_ALLOWANCE_S
        with errors.open("wb") as sink:
            child = subprocess.Popen(  # noqa: S603 - the command comes from settings
                [*command, "--request", str(asked), "--response", str(answered)], cwd=project,
                env=clean_environment(room), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=sink,
                start_new_session=True, preexec_fn=dies_with_parent())
        try:
            _follow(child, time.monotonic() + limit, limit, on_progress, on_tick)
        finally:
            end_tree(child.pid)
            child.wait()
            assert child.stdout is not None
            child.stdout.close()
        try:
            return read_response(answered, request)
        except ResponseInvalid as invalid:
            tail = errors.read_bytes()[-STDERR_SHOWN:].decode("utf-8", "replace").strip()
            said = f" Its last words: {tail}" if tail else ""
            raise ResponseInvalid(f"{invalid} The evaluator ended with code {child.returncode}.{said}") from invalid


def _follow(child: subprocess.Popen[bytes], deadline: float, limit: float,
            on_progress: Callable[[ProgressLine], None], on_tick: Callable[[], None]) -> None:
    """Read the child's output until it ends or its time is up."""
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    pending = b""
    with selectors.DefaultSelector() as ready:
        ready.register(child.stdout, selectors.EVENT_READ)
        reading = True
        while child.poll() is None:
            on_tick()
            if time.monotonic() > deadline:
                raise ResponseInvalid(f"The evaluator did not answer within {limit:.0f} s and was ended.")
            if not (reading and ready.select(TICK_S)):
                _wait_briefly(child, reading)
                continue
            chunk = child.stdout.read(LINE_LIMIT)
            if chunk == b"":  # closed its output but still runs: only its end is awaited
                reading = False
                continue
            *lines, pending = (pending + (chunk or b"")).split(b"\n")
            pending = pending[-LINE_LIMIT:]
            for line in lines:
                progress = read_progress(line)
                if progress is not None:
                    on_progress(progress)


def _wait_briefly(child: subprocess.Popen[bytes], reading: bool) -> None:
    if not reading:
        try:
            child.wait(TICK_S)
        except subprocess.TimeoutExpired:
            return


def read_progress(line: bytes) -> ProgressLine | None:
    """A progress line, or ``None`` for anything else: libraries may print, and a line proves nothing anyway."""
    try:
        document = json.loads(line)
        return ProgressLine(stage=str(document["stage"])[:40], done=int(document.get("done", 0)),
                            total=int(document.get("total", 0)), text=str(document.get("text", ""))[:300])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
