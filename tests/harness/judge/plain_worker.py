"""A worker without walls for trusted numba kernels: the decorators do nothing, so that bodies run as plain Python.

Nothing is compiled, an index beyond an array is an IndexError, and a lent input is a read-only array.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.domain.vocabulary import Outcome
from harness.evaluation.ports import CallReport, CandidateFault, Fault, Lent, LoadReport


@dataclass
class PlainWorker:
    """Implements ``ports.Worker`` in this process."""

    calls: int = 0
    closed: bool = False
    loaded_before: list[str] = field(default_factory=list)
    _run: Any = None

    def load(self, source: str) -> LoadReport:
        """Execute the source with decorators that leave functions alone."""
        plain = re.sub(r"^@numba\.njit.*$", "", source, flags=re.MULTILINE)
        scope: dict[str, Any] = {}
        exec(compile(plain, "candidate.py", "exec"), scope)
        self._run = scope["run"]
        self.loaded_before.append("load")
        return LoadReport(seconds=0.0)

    def call(self, lent: Sequence[Lent], attributes: Mapping[str, float]) -> CallReport:
        """Run once on views of the lent memory."""
        self.calls += 1
        arrays = [_array(item) for item in lent]
        try:
            with np.errstate(all="ignore"):
                self._run(*arrays, **attributes)
        except IndexError as error:
            raise CandidateFault(Fault(Outcome.OUT_OF_BOUNDS, "index_error", str(error))) from error
        except Exception as error:
            raise CandidateFault(Fault(Outcome.RUNTIME_ERROR, "exception", repr(error))) from error
        return CallReport(seconds=0.0)

    def close(self) -> None:
        """Forget the candidate."""
        self.closed = True


class CompiledWorker(PlainWorker):
    """The same with numba at work: fast, no bounds checks."""

    def load(self, source: str) -> LoadReport:
        """Execute the source as it is."""
        scope: dict[str, Any] = {}
        exec(compile(source, "candidate.py", "exec"), scope)
        self._run = scope["run"]
        return LoadReport(seconds=0.0)


@dataclass
class PlainOpener:
    """Opens plain workers and remembers them."""

    isolation: int = 0
    proved: tuple[str, ...] = ()
    workers: list[PlainWorker] = field(default_factory=list)
    kind: type[PlainWorker] = PlainWorker

    def open(self, **_: Any) -> PlainWorker:
        """A fresh worker."""
        self.workers.append(self.kind())
        return self.workers[-1]


def _array(item: Lent) -> np.ndarray:
    access = mmap.ACCESS_READ if item.kind == "input" else mmap.ACCESS_WRITE
    memory = mmap.mmap(item.fd, item.nbytes, access=access)
    dtype = np.dtype(item.dtype)
    return np.ndarray(item.shape, dtype, memory, item.offset, [stride * dtype.itemsize for stride in item.strides])
