"""Results of a long run kept in a file, one a line, so that a run that was ended goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

from harness import EVALUATOR_VERSION
from harness.domain.errors import UsageError
from harness.domain.files import MAX_DOCUMENT_BYTES, read_regular
from harness.domain.vocabulary import Backend
from harness.evaluation.run import Place
from harness.evaluation.selftest.corpus import CorpusKernel
from harness.evaluation.selftest.results import CorpusResult, result_of
from harness.evaluation.selftest.runner import place_of
from harness.hardware.detect import environment

GOOD_FOR_S = 24 * 3600.0
"""A result older than this is not taken over: DESIGN wants the whole corpus once a day."""


class Resumed:
    """The results kept in ``path``: ``taken`` are those that still count for the kernels asked for."""

    def __init__(self, path: Path, kernels: Sequence[CorpusKernel], hardware: str | None) -> None:
        """Read the file if it is there.

        Raises:
            UsageError: it cannot be read or written.
        """
        self._path = path
        self._hardware = hardware
        known = {self._key(kernel): kernel for kernel in kernels}
        self.taken: list[CorpusResult] = []
        for line in self._lines():
            try:
                document = json.loads(line)
                kernel = known[document["key"]]
                if time.time() - document["at"] < GOOD_FOR_S and document["right"] is not None:
                    self.taken.append(result_of(document, kernel))
                    del known[document["key"]]
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # another evaluator, another machine, or the half line of a run that was killed
        self.open = list(known.values())

    def add(self, result: CorpusResult) -> None:
        """Write one result through to the file."""
        document = {"key": self._key(result.kernel), "at": time.time(), **result.document()}
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write("\n" + json.dumps(document))
        except OSError as error:
            raise UsageError(f"The results cannot be kept in {self._path}: {error}.") from error

    def _lines(self) -> list[str]:
        if not (self._path.exists() or self._path.is_symlink()):
            return []
        data = read_regular(self._path, MAX_DOCUMENT_BYTES, "Give --resume another file.")
        try:
            return data.decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise UsageError(f"{self._path} cannot be read: {error}. Give --resume another file.") from error

    def _key(self, kernel: CorpusKernel) -> str:
        """What a result depends on: evaluator, machine, the kernel and what the table says about it."""
        place = place_of(kernel.backend, self._hardware)
        device = self._hardware if place is Place.DEVICE else None
        here = environment(Backend(kernel.backend), device).class_
        parts = (EVALUATOR_VERSION, here, kernel.name, kernel.source, kernel.operator, kernel.expected(place),
                 kernel.expected_stage(place), kernel.grant, kernel.prohibited, kernel.incumbent)
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
