"""What happened to one kernel of the corpus, also as a document that travels between processes and into files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.run import Place
from harness.evaluation.selftest.corpus import CorpusKernel


@dataclass(frozen=True, slots=True)
class CorpusResult:
    """What happened to one kernel. ``right`` is ``None`` where the evaluator could not judge it.

    ``environment`` and ``isolation`` are the verdict's: a pass counts for that environment class and level only.
    """

    kernel: CorpusKernel
    outcome: Outcome
    stage: Stage
    code: str | None
    text: str
    right: bool | None
    seconds: float
    environment: str | None = None
    isolation: int | None = None
    place: Place = Place.NUMBA

    @property
    def failed(self) -> bool:
        """A cheat or wrong kernel slipped through, or an honest one was refused. One that was refused for another
        reason than the table names is not ``right``, but nobody was misled by it."""
        return self.right is False and (self.kernel.kind == "honest" or self.outcome is Outcome.PASSED)

    def document(self) -> dict[str, Any]:
        """The result as plain data; the kernel by its name."""
        return {"name": self.kernel.name, "outcome": str(self.outcome), "stage": str(self.stage), "code": self.code,
                "text": self.text, "right": self.right, "seconds": round(self.seconds, 3),
                "environment": self.environment, "isolation": self.isolation, "place": str(self.place)}


def result_of(document: dict[str, Any], kernel: CorpusKernel) -> CorpusResult:
    """The opposite of ``document``.

    Raises:
        KeyError, ValueError: the document is not one.
    """
    return CorpusResult(
        kernel=kernel, outcome=Outcome(document["outcome"]), stage=Stage(document["stage"]), code=document["code"],
        text=document["text"], right=document["right"], seconds=document["seconds"],
        environment=document["environment"], isolation=document["isolation"], place=Place(document["place"]))
