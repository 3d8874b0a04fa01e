"""One operator's libraries and our kernels in the same rounds: interleaved in time, all samples kept. No torch here."""

from __future__ import annotations

import random
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.domain.errors import HarnessError, InfrastructureError
from harness.domain.vocabulary import Backend
from harness.hardware import exclusive
from harness.peers.process import LibraryDied, LibraryProcess
from harness.peers.registry import here, peers_of

PREPARE_S, ROUND_S, CHECK_S, LOCK_S = 400.0, 120.0, 180.0, 600.0
"""Limits in seconds: compiling a shape's libraries, one round, holding what is left against float64, waiting for
another measurement on the device."""
Rounds = dict[str, dict[str, list[tuple[float, ...]]]]
"""By shape, then by side: one tuple of microseconds per round."""
Us = dict[str, dict[str, tuple[float, ...]]]
"""Microseconds per call: by shape, then by kernel, one per sample."""


class Ours(Protocol):
    """Rounds of our kernels."""

    pieces: Sequence[Sequence[str]]
    """Shapes that one round measures together, in order."""

    def round(self, piece: Sequence[str], pairs: int) -> Us:
        """``pairs`` cold samples of every kernel on the shapes of one piece, buffers and contents new."""
        ...

    def floor_s(self, label: str) -> float:
        """The least seconds that the measured roofs allow for a call, by its bytes and operations."""
        ...

    def rates(self) -> dict[str, float]:
        """The measured roofs by name and unit, as verdicts name them."""
        ...

    def close(self) -> None:
        """Give everything back; idempotent."""
        ...


@dataclass
class Taken:
    """Everything a session showed. ``absent`` and ``checks`` are by (shape, side); ``facts`` is what the libraries'
    process says of its device; ``failed`` why a shape has no times of our kernels; ``held_s`` the seconds that the
    device was kept from others, ``prepared`` those of them that a shape's contents and libraries took."""

    peers: Rounds = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    ours: Rounds = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    absent: dict[tuple[str, str], str] = field(default_factory=dict)
    checks: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    graphs: dict[tuple[str, str], bool | None] = field(default_factory=dict)
    floors: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    prepared: dict[str, dict[str, float]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    held_s: float = 0.0

    @property
    def captured(self) -> bool:
        """Whether calls are captured in graphs where this was measured."""
        return any(graph is not None for graph in self.graphs.values())


@dataclass(frozen=True, slots=True)
class Asked:
    """What is measured: the operator's name and shapes on a backend, which peers, and a control kernel of ours."""

    operator: str
    backend: Backend
    workload: str
    hardware: str
    shapes: tuple[str, ...]
    peers: tuple[str, ...]
    control: tuple[str, str] | None = None
    device: Mapping[str, Any] = field(default_factory=dict)
    """For a CPU: ``cores``, ``cache_bytes``, ``memory_bytes``."""


Start = Callable[[dict[str, Any], Callable[[str], None]], LibraryProcess]


class PeerSession:
    """Runs one ``Asked``. ``start`` opens the libraries' process; ``ours`` gives our clock, once libraries are ready,
    and is ``None`` where nothing of ours runs."""

    def __init__(self, asked: Asked, ours: Callable[[], Ours] | None, *, start: Start = LibraryProcess,
                 told: Callable[[str], None] = lambda text: None) -> None:
        self._asked, self._make, self._start, self._told = asked, ours, start, told
        self._ours: Ours | None = None
        self._random = random.Random(secrets.randbits(64))
        self._process: LibraryProcess | None = None
        self._lost: set[tuple[str, str]] = set()
        self._preparing = ""
        self._failed: set[tuple[str, ...]] = set()
        self.taken = Taken()

    def run(self, rounds: int, pairs: int) -> Taken:
        """``rounds`` rounds of ``pairs`` samples of everything.

        Raises:
            InfrastructureError: our own kernels cannot be made ready, or the device is not free in time.
        """
        self._name_absent()
        with exclusive.device(self._asked.hardware, LOCK_S, lambda: self._told("waiting for another measurement")):
            began = time.monotonic()
            try:
                self._prepare()
                self._ours = self._make() if self._make is not None else None
                for number in range(rounds):
                    self._told(f"round {number + 1} of {rounds}")
                    for piece in self._pieces():
                        self._piece(piece, pairs)
                self._floors()
            finally:
                self.taken.held_s = round(time.monotonic() - began, 3)
        self._check()
        return self.taken

    def close(self) -> None:
        """End the libraries' process; idempotent."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def _tell(self, name: str) -> None:
        self._told(f"{self._asked.operator} {self._preparing}: {name}")

    def _name_absent(self) -> None:
        for peer in peers_of(self._asked.operator):
            why = here(peer, self._asked.backend)
            if why is not None:
                for label in self._asked.shapes:
                    self.taken.absent[label, peer.name] = why

    def _pieces(self) -> Sequence[Sequence[str]]:
        return self._ours.pieces if self._ours is not None else [(label,) for label in self._asked.shapes]

    def _prepare(self) -> None:
        """Every shape's libraries, in a process that survives it. One that ends it is left out from then on."""
        while True:
            try:
                if self._process is None:
                    self._process = self._start(self._first_request(), self._tell)
                    self.taken.facts = dict(self._process.facts)
                for label in self._asked.shapes:
                    if (label, "") not in self._lost:
                        self._prepare_one(self._process, label)
                return
            except LibraryDied as died:
                self._forget(died, self._preparing)
            except InfrastructureError as error:  # torch or the device does not start: nothing of it can be measured
                self._give_up(error)
                return

    def _prepare_one(self, process: LibraryProcess, label: str) -> None:
        self._preparing = label
        skip = [name for shape, name in self._lost if shape == label]
        answer = process.ask({"op": "prepare", "shape": label, "skip": skip}, timeout_s=PREPARE_S)
        self.taken.prepared[label] = {name: answer[name] for name in ("contents_s", "libraries_s") if name in answer}
        for name, why in answer["absent"].items():
            self.taken.absent[label, name] = why
        for name, facts in answer["sides"].items():
            self.taken.graphs[label, name] = facts["graph"]
        if not answer["sides"]:
            self._lost.add((label, ""))

    def _first_request(self) -> dict[str, Any]:
        asked, control = self._asked, self._asked.control
        return {"operator": asked.operator, "backend": str(asked.backend), "workload": asked.workload,
                "peers": list(asked.peers), **asked.device,
                "control": None if control is None else {"name": control[0], "source": control[1]}}

    def _forget(self, died: LibraryDied, label: str) -> None:
        """Leave out what ended the process: one library on one shape where that is known, else the shape."""
        self._process = None
        names = [died.name] if died.name else [*self._sides(label), ""]
        for name in names:
            self._lost.add((label, name))
            if name:
                self.taken.absent[label, name] = f"Its process was lost on this shape: {died.text}"
                self.taken.peers[label].pop(name, None)
        self.taken.notes.append(f"{label}: the libraries' process was lost: {died.text}")

    def _give_up(self, error: HarnessError) -> None:
        self.close()
        for label in self._asked.shapes:
            self._lost.add((label, ""))
            for name in self._sides(label):
                self.taken.absent[label, name] = error.text
                self.taken.peers[label].pop(name, None)

    def _sides(self, label: str) -> list[str]:
        known = [name for shape, name in self.taken.graphs if shape == label]
        return known or [name for name in self._asked.peers if (label, name) not in self.taken.absent]

    def _piece(self, piece: Sequence[str], pairs: int) -> None:
        """One round of some shapes by both clocks, in random order."""
        turns: list[Callable[[], None]] = [lambda label=label: self._libraries(label, pairs)  # type: ignore[misc]
                                           for label in piece]
        if self._ours is not None:
            ours = self._ours

            turns.append(lambda: self._own(ours, piece, pairs))
        self._random.shuffle(turns)
        for turn in turns:
            turn()

    def _own(self, ours: Ours, piece: Sequence[str], pairs: int) -> None:
        """A round of our kernels; shapes on which they fail are left out from then on, and named."""
        if tuple(piece) in self._failed:
            return
        try:
            found = ours.round(piece, pairs)
        except HarnessError as error:
            self._failed.add(tuple(piece))
            for label in piece:
                self.taken.ours.pop(label, None)
                self.taken.failed[label] = error.text
            return
        for label, sides in found.items():
            for name, values in sides.items():
                self.taken.ours[label][name].append(values)

    def _libraries(self, label: str, pairs: int) -> None:
        if (label, "") in self._lost or self._process is None:
            return
        try:
            answer = self._process.ask({"op": "round", "shape": label, "pairs": pairs}, timeout_s=ROUND_S)
        except LibraryDied as died:
            self._forget(died, label)
            self._prepare()
            return
        except InfrastructureError as error:
            self._lost.add((label, ""))
            self.taken.notes.append(f"{label}: {error.text}")
            for name in self._sides(label):
                self.taken.absent[label, name] = error.text
                self.taken.peers[label].pop(name, None)
            return
        for name, why in answer["dropped"].items():
            self.taken.absent[label, name] = why
            self.taken.peers[label].pop(name, None)
        for name, values in answer["us"].items():
            self.taken.peers[label][name].append(tuple(values))

    def _floors(self) -> None:
        if self._ours is not None:
            self.taken.floors = {label: self._ours.floor_s(label) for label in self._asked.shapes}
            self.taken.rates = self._ours.rates()

    def _check(self) -> None:
        """After the device was given back: float64 takes its time."""
        for label in self._asked.shapes:
            if self._process is None or not self.taken.peers[label]:
                continue
            try:
                answer = self._process.ask({"op": "check", "shape": label}, timeout_s=CHECK_S)
            except (LibraryDied, InfrastructureError) as error:
                self.taken.notes.append(f"{label}: what the libraries left could not be checked: {error}")
                continue
            for name, checked in answer["checks"].items():
                self.taken.checks[label, name] = checked
