"""An advisory second opinion: ``kernelguard``, where somebody installed it, reads the candidate's text too.

It runs beside the verdict path, in a process of its own with limits, because it parses hostile text. It can add notes
and nothing else: not an outcome, not a tier, not a word of the candidate. Without the package nothing is claimed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import metadata
from typing import IO, Any

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Stage

COMMAND = (sys.executable, "-I", "-B", "-m", "kernelguard", "--api-mode")
"""Its documented interface for one kernel: the source on standard input, one JSON document on standard output."""
WAIT_S = 3.0
CPU_S, MEMORY_BYTES, ANSWER_BYTES = 3, 1 << 30, 1 << 18
NOTES_AT_MOST = 8
_RULE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_SEVERITIES = ("critical", "high", "medium", "low", "info")


def installed() -> str | None:
    """The version of the package, ``None`` where it is not installed. Loads nothing of it."""
    try:
        return metadata.version("kernelguard")
    except metadata.PackageNotFoundError:
        return None


class Scan:
    """A scan that was started; ``notes`` ends it."""

    def __init__(self, source: str, version: str, command: Sequence[str] = COMMAND) -> None:
        """Start the scanner on ``source`` and return at once. A scanner that does not start has no opinion."""
        self._version = version
        self._deadline = time.monotonic() + WAIT_S
        self._answer: IO[bytes] = io.BytesIO()
        self._process: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError), tempfile.TemporaryFile() as text:
            self._answer = tempfile.TemporaryFile()  # noqa: SIM115 - closed by ``notes``
            text.write(source.encode("utf-8", "surrogatepass"))
            text.seek(0)
            self._process = subprocess.Popen(
                command, stdin=text, stdout=self._answer, stderr=subprocess.DEVNULL, env={}, cwd="/",
                start_new_session=True, preexec_fn=_limit)

    def notes(self) -> tuple[Reason, ...]:
        """What it found, one note a rule; waits a moment at most and leaves no process behind."""
        try:
            if self._process is None:
                return ()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, self._deadline - time.monotonic()))
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
                return ()
            self._answer.seek(0)
            return tuple(_read(self._answer.read(ANSWER_BYTES + 1), self._version))
        finally:
            self._answer.close()


def _read(answer: bytes, version: str) -> list[Reason]:
    """Names of rules and severities alone: anything else in the answer may be the candidate's own words."""
    try:
        document: Any = json.loads(answer) if len(answer) <= ANSWER_BYTES else None
    except (ValueError, RecursionError):
        return []
    matched = document.get("matched_patterns") if isinstance(document, dict) else None
    rules: dict[str, str] = {}
    for entry in matched if isinstance(matched, list) else []:
        if not isinstance(entry, dict):
            continue
        name, severity = entry.get("pattern"), entry.get("severity")
        if isinstance(name, str) and _RULE.fullmatch(name) and severity in _SEVERITIES:
            rules.setdefault(name, str(severity))
    return [Reason(code="second_opinion", stage=Stage.STATIC, text=f"kernelguard {version}, a scanner that has no part "
                   f"in the verdict, applies its rule {name} ({severity}) to this source.")
            for name, severity in list(rules.items())[:NOTES_AT_MOST]]


def _limit() -> None:
    """In the child, before it starts: little time, memory and room, and the lowest priority."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (ANSWER_BYTES + 1, ANSWER_BYTES + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(19)
