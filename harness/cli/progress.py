"""Three ways to show progress: nothing, one line on a terminal, JSON lines for a supervising process."""

from __future__ import annotations

import json
import sys
import time

from harness.cli.terminal import CLEAR
from harness.domain.vocabulary import Stage

HZ = 4  # frames per second at most; a page shows no more


class Quiet:
    """Shows nothing."""

    def __call__(self, stage: Stage, done: int, total: int, text: str) -> None:
        return None

    def close(self) -> None:
        """Nothing to end."""


class Line:
    """Rewrites one line on stderr where that is a terminal, else prints each stage once."""

    def __init__(self) -> None:
        self._last: Stage | None = None
        self._began = time.monotonic()

    def __call__(self, stage: Stage, done: int, total: int, text: str) -> None:
        share = f" {done}/{total}" if total else ""
        if sys.stderr.isatty():
            clock = time.monotonic() - self._began
            sys.stderr.write(CLEAR)
            sys.stderr.write(f"{clock:6.1f} s  {stage}{share}  {text}"[:110])
            sys.stderr.flush()
        elif stage is not self._last:
            sys.stderr.write(f"{stage}\n")
        self._last = stage

    def close(self) -> None:
        """Leave the cursor on a clean line."""
        if sys.stderr.isatty():
            sys.stderr.write(CLEAR)


class JsonLines:
    """One JSON object a line on stdout, at most ``HZ`` a second, stage changes always."""

    def __init__(self) -> None:
        self._last: tuple[Stage | None, float] = (None, 0.0)

    def __call__(self, stage: Stage, done: int, total: int, text: str) -> None:
        now = time.monotonic()
        if stage is self._last[0] and now - self._last[1] < 1 / HZ and done != total:
            return
        self._last = (stage, now)
        frame = {"stage": str(stage), "done": done, "total": total, "text": text}
        sys.stdout.write(json.dumps(frame) + "\n")
        sys.stdout.flush()

    def close(self) -> None:
        """Nothing to end."""
