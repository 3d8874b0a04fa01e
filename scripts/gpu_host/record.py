"""The steps of a run with their times: printed as they end, kept for the table and the file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from scripts.gpu_host.visitor import Failed

T = TypeVar("T")
LOOK_EVERY_S = 0.5


@dataclass(slots=True)
class Step:
    """One step: when it began (seconds since the start), how long it took, and what came out."""

    name: str
    at: float
    seconds: float = 0.0
    text: str = ""
    ok: bool = False


@dataclass
class Record:
    """All steps of a run. Nothing may last beyond ``limit_s`` in all."""

    limit_s: float
    began: float = field(default_factory=time.monotonic)
    steps: list[Step] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.began

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Time a step; a failure inside is its text and goes on upwards."""
        row = Step(name, self.seconds)
        self.steps.append(row)
        try:
            yield row
            row.ok = True
        except Failed as problem:
            row.text = str(problem)
            raise
        finally:
            row.seconds = self.seconds - row.at
            say(f"{row.seconds:7.1f} s  {'ok  ' if row.ok else 'FAIL'}  {name:34}  {row.text[:300]}")

    def until(self, what: str, look: Callable[[], T | None], limit_s: float) -> T:
        """What ``look`` finds, asked again and again.

        Raises:
            Failed: it found nothing in ``limit_s``, or in what is left of the whole run's limit.
        """
        allowed = min(limit_s, self.limit_s - self.seconds)
        deadline = time.monotonic() + allowed
        while True:
            found = look()
            if found is not None:
                return found
            if time.monotonic() > deadline:
                raise Failed(f"{what} did not happen within {allowed:.0f} s")
            time.sleep(LOOK_EVERY_S)

    def table(self) -> str:
        """The steps as a table."""
        width = max(len(step.name) for step in self.steps)
        lines = [f"{'step':{width}}  {'at s':>7}  {'took s':>7}  outcome"]
        lines += [f"{row.name:{width}}  {row.at:7.1f}  {row.seconds:7.1f}  {'' if row.ok else 'FAILED: '}{row.text}"
                  for row in self.steps]
        return "\n".join(lines)

    def document(self) -> list[dict[str, Any]]:
        """The steps for a file."""
        return [{"step": step.name, "at_s": round(step.at, 2), "seconds": round(step.seconds, 2), "ok": step.ok,
                 "text": step.text} for step in self.steps]


def say(text: str) -> None:
    """A line at once, also through a pipe."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
