"""The corpus: a folder of small kernels with a table that says what must happen to each, and where."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.domain.errors import UsageError
from harness.domain.vocabulary import Backend, Outcome, Stage, Tier
from harness.evaluation.run import Place
from harness.operators.base import OperatorSpec

Kind = Literal["cheat", "wrong", "honest"]
KINDS: tuple[Kind, ...] = ("cheat", "wrong", "honest")
FOLDER = Path(__file__).parents[3] / "tests" / "adversarial"
PLACES = {Backend.NUMBA: (Place.NUMBA,), Backend.TRITON: (Place.INTERPRETER, Place.DEVICE)}
"""Where a kernel of each backend is judged unless the table says otherwise."""
BEFORE_A_PROCESS = (Stage.ADMIT, Stage.STATIC, Stage.ARITHMETIC)
"""Stages that end the same way everywhere: no candidate has been started."""


@dataclass(frozen=True, slots=True)
class CorpusKernel:
    """One kernel. ``outcomes`` are acceptable; ``stage`` is where a refusal must happen, if that is certain.

    ``places`` are where it is judged: a race is only one on a device, so the interpreter is not asked about it.
    ``device_outcomes`` replace ``outcomes`` there, where a device shows another side of the same fault.
    ``incumbent`` is ``baseline`` where the kernel is offered as a change of the operator's baseline; ``deadline_s`` is
    shorter than usual for kernels that never end.
    """

    name: str
    kind: Kind
    operator: str
    backend: Backend
    outcomes: tuple[Outcome, ...]
    source: str
    note: str
    stage: Stage | None = None
    quick: bool = False
    grant: Tier = Tier.HEAVY
    prohibited: tuple[str, ...] = ()
    incumbent: Literal["baseline"] | None = None
    deadline_s: float = 120.0
    places: tuple[Place, ...] = ()
    device_outcomes: tuple[Outcome, ...] = ()

    def judged_at(self, place: Place) -> bool:
        """Whether the table says anything about this kernel at ``place``."""
        return place in (self.places or PLACES[self.backend])

    def expected(self, place: Place) -> tuple[Outcome, ...]:
        """Acceptable outcomes at ``place``."""
        return self.device_outcomes if place is Place.DEVICE and self.device_outcomes else self.outcomes

    def expected_stage(self, place: Place) -> Stage | None:
        """Where the refusal must happen at ``place``. Cases differ on a device, so only the stages before a process
        is started are certain there."""
        return self.stage if place is not Place.DEVICE or self.stage in BEFORE_A_PROCESS else None


def read_corpus(folder: Path = FOLDER) -> tuple[CorpusKernel, ...]:
    """Every kernel of ``folder/index.toml``.

    Raises:
        UsageError: the folder, its table or one of its files is missing or wrong; the sentence names it.
    """
    index = folder / "index.toml"
    try:
        entries = tomllib.loads(index.read_text("utf-8"))["kernel"]
    except FileNotFoundError as error:
        raise UsageError(f"The self-test's corpus is not there: {index} is missing. It ships with the repository in "
                         "tests/adversarial; restore that folder.", code="selftest_corpus") from error
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{index} cannot be read: {error}.", code="selftest_corpus") from error
    kernels = tuple(_read_entry(folder, index, entry) for entry in entries)
    names = [kernel.name for kernel in kernels]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise UsageError(f"{index} lists {doubled} twice.", code="selftest_corpus")
    return kernels


def operator_kernels(spec: OperatorSpec) -> tuple[CorpusKernel, ...]:
    """The wrong kernels that an operator ships, as part of the corpus. The static stage may refuse them first."""
    return tuple(CorpusKernel(
        name=f"{spec.name}/wrong/{wrong.backend}/{wrong.name}", kind="wrong", operator=spec.name, backend=wrong.backend,
        outcomes=(*(Outcome(outcome) for outcome in wrong.outcomes), Outcome.POLICY_VIOLATION),
        source=(spec.folder / "wrong" / wrong.backend / f"{wrong.name}.py").read_text("utf-8"), note=wrong.failure)
        for wrong in spec.wrong_kernels)


def whole_corpus() -> tuple[CorpusKernel, ...]:
    """The table's kernels and the wrong ones of every registered operator."""
    from harness.operators import registry

    return (*read_corpus(), *(kernel for spec in registry.all_operators() for kernel in operator_kernels(spec)))


def _read_entry(folder: Path, index: Path, entry: dict[str, Any]) -> CorpusKernel:
    name = entry.get("file", "an entry without a file")
    try:
        return CorpusKernel(
            name=name, kind=entry["kind"], operator=entry["operator"], backend=Backend(entry["backend"]),
            outcomes=tuple(Outcome(outcome) for outcome in entry["outcomes"]),
            source=(folder / name).read_bytes().decode("utf-8"), note=entry["note"],
            stage=Stage(entry["stage"]) if "stage" in entry else None, quick=entry.get("quick", False),
            grant=Tier(entry.get("grant", "heavy")), prohibited=tuple(entry.get("prohibited", ())),
            incumbent=entry.get("incumbent"), deadline_s=float(entry.get("deadline", 120.0)),
            places=tuple(Place(place) for place in entry.get("places", ())),
            device_outcomes=tuple(Outcome(outcome) for outcome in entry.get("device_outcomes", ())))
    except (OSError, KeyError, ValueError) as error:
        raise UsageError(f"{index}: {name} cannot be used: {error}.", code="selftest_corpus") from error
