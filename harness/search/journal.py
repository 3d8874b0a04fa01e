"""A search's journal: one JSON object a line, written as things happen, from which a search goes on where it ended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, TextIO

from harness.domain.errors import UsageError
from harness.domain.files import MAX_DOCUMENT_BYTES, read_regular
from harness.search.configs import Built, Config

VERSION = 1
MOST_SECONDS = 1e7


@dataclass(frozen=True, slots=True)
class Spent:
    """What a search took, in seconds: of the wall clock, of the device held, of all its building processes."""

    seconds: float = 0.0
    device_s: float = 0.0
    build_s: float = 0.0

    def __add__(self, more: Spent) -> Spent:
        return Spent(self.seconds + more.seconds, self.device_s + more.device_s, self.build_s + more.build_s)


class Journal:
    """The record of one search, in memory and, with a path, in a file. Lines have a ``kind``: ``search`` (what is
    searched, first), ``built`` (one configuration), ``timed`` (its samples of one rung, microseconds per shape, and
    those of the starting kernel in the same sweeps), ``best``, ``spent`` (what the search took so far, all its runs
    together) and ``end`` (the same, once it is over)."""

    def __init__(self, header: Mapping[str, Any], path: Path | None = None) -> None:
        """Continue the file at ``path`` where it exists, else begin it.

        Raises:
            UsageError: the file is of another search, or cannot be read or written.
        """
        self._header = {"kind": "search", "version": VERSION, **header}
        self._problems: dict[Config, str] = {}
        self._built: dict[Config, dict[str, Any]] = {}
        self._timed: dict[int, dict[Config, dict[str, Any]]] = {}
        self._times = bool(header.get("timed", True))
        self._file: TextIO | None = None
        self.before = Spent()
        """What earlier runs of this search took."""
        if path is None:
            return
        try:
            known = path.exists() and (not path.is_file() or path.stat().st_size > 0)
            if known:
                self._read(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}. Name a file that can be written.") from error
        if not known:
            self._write(self._header)

    @property
    def configurations(self) -> int:
        """Configurations that were built or ruled out, this time or before."""
        return len(self._built)

    def known(self, config: Config) -> bool:
        """Whether nothing is left to do for it in the first rung; where nothing is timed, whether it was built."""
        return config in self._problems or config in (self._timed.get(0, {}) if self._times else self._built)

    def built(self, one: Built) -> None:
        """Note what building gave."""
        row = {"kind": "built", "bucket": one.config.bucket, "params": one.config.params, "problem": one.problem,
               "text": one.text, "registers": one.registers, "spill_bytes": one.spill_bytes,
               "shared_bytes": one.shared_bytes, "occupancy": one.occupancy}
        if one.config not in self._built or self._problems.get(one.config) != (one.problem or None):
            self._write(row)
        self._take(row)

    def failed(self, config: Config, problem: str, text: str) -> None:
        """Note that a configuration failed on the device."""
        row = {"kind": "built", "bucket": config.bucket, "params": config.params, "problem": problem, "text": text}
        self._write(row)
        self._take(row)

    def timed(self, rung: int, config: Config, us: Mapping[str, Sequence[float]],
              start_us: Mapping[str, Sequence[float]]) -> None:
        """Note samples by shape: microseconds per call of the configuration and of the starting kernel."""
        row = {"kind": "timed", "rung": rung, "bucket": config.bucket, "params": config.params,
               "us": {label: [round(value, 3) for value in values] for label, values in us.items()},
               "start_us": {label: [round(value, 3) for value in values] for label, values in start_us.items()}}
        self._write(row)
        self._take(row)

    def times(self, rung: int) -> dict[Config, dict[str, Any]]:
        """The ``timed`` rows of a rung."""
        return dict(self._timed.get(rung, {}))

    def problem(self, config: Config) -> str | None:
        """Why a configuration cannot be timed, ``None`` where nothing is known against it."""
        return self._problems.get(config)

    def problems(self) -> dict[str, int]:
        """Configurations by what ruled them out."""
        counts: dict[str, int] = {}
        for problem in self._problems.values():
            counts[problem] = counts.get(problem, 0) + 1
        return dict(sorted(counts.items()))

    def spent(self, now: Spent, *, over: bool = False) -> Spent:
        """Note what this run took so far, ``now``, and give what all runs took together; a search that is killed has
        the last note."""
        total = self.before + now
        self._write({"kind": "end" if over else "spent", "seconds": round(total.seconds, 2),
                     "device_s": round(total.device_s, 2), "build_s": round(total.build_s, 2)})
        return total

    def say(self, kind: str, document: Mapping[str, Any]) -> None:
        """Write a line of another kind."""
        self._write({"kind": kind, **document})

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, row: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(row, separators=(",", ":")) + "\n")
            self._file.flush()

    def _take(self, row: Mapping[str, Any]) -> None:
        config = Config(row["bucket"], tuple((key, value) for key, value in row["params"].items()))
        if row["kind"] == "timed":
            self._timed.setdefault(int(row["rung"]), {})[config] = dict(row)
            return
        self._built[config] = dict(row)
        if row["problem"]:
            self._problems[config] = row["problem"]

    def _read(self, path: Path) -> None:
        data = read_regular(path, MAX_DOCUMENT_BYTES, "Name a new file.", "The journal")
        whole = data[: data.rfind(b"\n") + 1]
        found = []
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise UsageError(f"{path}: line {number} is no JSON. Give the journal of a search, or a new "
                                 "file.") from error
        if not found or not isinstance(found[0], dict):
            raise UsageError(f"{path} is no journal of a search; it was left as it is. Name a new file.")
        if found[0] != _plain(self._header):
            differs = [key for key in self._header if found[0].get(key) != _plain(self._header[key])]
            raise UsageError(f"{path} is the journal of another search ({', '.join(differs) or 'other keys'} "
                             "differ). Repeat the options of that search, or name a new file.")
        for number, row in enumerate(found[1:], 2):
            try:
                self._take_again(row)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise UsageError(f"{path}: line {number} is no line of a search's journal; the file was left as it is. "
                                 "Name a new file.") from error
        if len(whole) < len(data):  # a killed search leaves half a line
            path.write_bytes(whole)

    def _take_again(self, row: Mapping[str, Any]) -> None:
        """Take over a line of an earlier run; raises whatever a line of another form leads to."""
        if row["kind"] in ("built", "timed"):
            self._take(row)
        elif row["kind"] in ("spent", "end"):
            self.before = Spent(*(float(row[name]) for name in ("seconds", "device_s", "build_s")))
            if not all(0 <= one < MOST_SECONDS for one in astuple(self.before)):
                raise ValueError("no number of seconds that a search takes")


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))
