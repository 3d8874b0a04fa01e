"""A long series of measurements in a JSON-lines file: a header, then one line per finished item.

A killed series goes on where it stopped; what was measured on another machine or with other versions is never mixed in.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import table
from harness.hardware.detect import version

Line = dict[str, Any]


class OtherSeries(Exception):
    """The file holds a series of another machine, other versions or other settings."""


def facts(packages: Sequence[str], **more: Any) -> Line:
    """What must be equal for two runs to be one series: machine, versions (``absent`` where none is) and ``more``."""
    versions = {name: version(name) for name in packages}
    return {"machine": table.cpu(), "system": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(), **versions, **more}


class Series:
    """The file. ``lines`` are all finished items; ``add`` appends one and is on the disk when it returns."""

    def __init__(self, path: Path, header: Line) -> None:
        """Open or begin ``path``.

        Raises:
            OtherSeries: its header differs from ``header``.
        """
        self.path, self.lines = path, []
        known = _read(path)
        if known:
            self.header = known[0]
            differing = [key for key in {**self.header, **header} if key != "began"
                         and self.header.get(key) != header.get(key)]
            if differing:
                raise OtherSeries(f"{path} holds another series: {', '.join(sorted(differing))} differ. Name another "
                                  "file with --out, or measure where and as that one was.")
            self.lines = known[1:]
            _write(path, known)  # without a line that was cut short
        else:
            self.header = {**header, "began": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, [self.header])

    def add(self, line: Line) -> None:
        """Append a finished item."""
        self.lines.append(line)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def of(self, **wanted: Any) -> list[Line]:
        """The items with these values."""
        return [line for line in self.lines if all(line.get(key) == value for key, value in wanted.items())]


def _read(path: Path) -> list[Line]:
    """All whole lines; the last one may have been cut short by a kill."""
    if not path.exists():
        return []
    texts = path.read_text("utf-8").splitlines()
    lines = []
    for number, text in enumerate(texts):
        try:
            lines.append(json.loads(text))
        except ValueError:
            if number < len(texts) - 1:
                raise OtherSeries(f"{path}, line {number + 1}, is no JSON. Move the file away or mend it.") from None
    return lines


def _write(path: Path, lines: Sequence[Line]) -> None:
    partial = path.with_suffix(path.suffix + ".partial")
    partial.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    partial.replace(path)
