"""Runs what a report needs, phase by phase, and keeps every finished piece; what is there already is not run again."""

from __future__ import annotations

import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from harness import EVALUATOR_VERSION
from harness.campaign.local import Evaluator
from harness.domain.codec import from_document, to_document
from harness.domain.digest import digest_source
from harness.domain.errors import HarnessError
from harness.domain.peers import ClockAgreement, Peers, Row
from harness.domain.report import Report
from harness.domain.vocabulary import Backend
from harness.domain.words import one_line
from harness.operators import registry
from harness.peers import store
from harness.peers.measure import BASELINE, documented, measure, protocol
from harness.peers.registry import versions
from harness.report.assemble import assemble
from harness.report.campaigns import run_one
from harness.report.searches import NAME, run_search
from harness.report.settings import Folder, Settings, here

LEAST_S = 20.0
"""A piece is not begun with less of the budget left, seconds."""
Told = Callable[[str], None]
Measure = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing to run: a session with libraries, or an agent's campaign."""

    operator: str
    phase: str
    agent: str = ""

    @property
    def name(self) -> str:
        """The document that says it was run."""
        folder = f"operators/{self.operator}"
        return f"{folder}/{self.agent}/campaign.json" if self.agent else f"{folder}/{self.phase}.json"


@dataclass
class ReportRun:
    """One run of a report, which may be one of several. ``evaluate`` judges, ``measure`` times libraries; ``todo`` is
    what this run does of the whole ``settings``."""

    folder: Folder
    settings: Settings
    began: str
    evaluate: Evaluator
    told: Told
    budget_s: float | None = None
    todo: Settings | None = None
    measure: Measure = measure
    search: Callable[..., Any] = run_search
    clock: Callable[[], float] = time.monotonic
    _since: float = 0.0
    _name: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    _cut: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Every piece that is not there yet, as far as the budget reaches; a piece that fails is named and left out."""
        self._since = self.clock()
        try:
            for piece in pieces(self.todo or self.settings):
                if self._done(piece):
                    continue
                left = self._left_s()
                if left < LEAST_S:
                    self._cut.append("The budget of this run was spent; go on with --resume.")
                    break
                self.told(f"{piece.operator}: {piece.agent or piece.phase}")
                self._one(piece, left)
                self._note_run()
        finally:
            self._note_run()

    def _done(self, piece: Piece) -> bool:
        """Whether it was run to its end, and our kernels could be timed in it."""
        document = self.folder.read(piece.name)
        if document is None or document.get("failed") or document.get("cut"):
            return False
        if piece.phase != "final":
            return True
        timed = {row.get("kernel") for row in document["rows"]}  # a campaign that went on may have found a better one
        return all(digest_source(source) in timed for source in self._bests(piece.operator).values())

    def _one(self, piece: Piece, left: float) -> None:
        try:
            if piece.agent:
                run_one(self.settings, piece.operator, piece.agent, self.evaluate, self.folder, left, self.told)
            elif piece.phase == "search":
                self.search(self.settings, piece.operator, self.evaluate, self.folder, self.told)
            else:
                self._session(piece)
        except HarnessError as error:
            self._lost(piece, error.text)
        except Exception as error:  # noqa: BLE001 - one piece never takes the others' figures away
            where = traceback.extract_tb(error.__traceback__)[-1]
            self._lost(piece, f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})")

    def _lost(self, piece: Piece, text: str) -> None:
        sentence = one_line(f"{piece.operator}, {piece.agent or piece.phase}: {text} --resume tries it again.")
        self._cut.append(sentence)
        self.told(sentence)

    def _session(self, piece: Piece) -> None:
        settings, spec = self.settings, registry.get(piece.operator)
        sources = {BASELINE: spec.baseline(settings.backend)}
        if piece.phase == "final":
            sources |= self._bests(piece.operator)
        began = datetime.now(UTC).isoformat(timespec="seconds")
        measured = self.measure(spec, settings.backend, settings.workload, settings.hardware, sources,
                                rounds=settings.peer_rounds, pairs=settings.pairs, told=self.told)
        document = dict(documented(measured))
        self.folder.write(piece.name, {**document, "began": began})
        store.keep(self._peers(document, began))

    def _bests(self, operator: str) -> dict[str, str]:
        """Every agent's best kernel by the agent's name, where it beat the baseline."""
        found = {}
        for agent in self.settings.agents:
            document = self.folder.read(Piece(operator, "campaigns", agent).name)
            for kernel in (document or {}).get("kernels", ()):
                if kernel["agent"] == agent:
                    found[agent] = document["sources"][kernel["digest"]]  # type: ignore[index]
        searched = self.folder.read(Piece(operator, "search").name) or {}
        for kernel in searched.get("kernels", ()):
            found[NAME] = searched["sources"][kernel["digest"]]
        return found

    def _peers(self, document: dict[str, Any], began: str) -> Peers:
        rows = tuple(from_document(row, Row) for row in document["rows"])
        clocks = tuple(from_document(one, ClockAgreement) for one in document["clocks"])
        return Peers(str(self.settings.backend), self.settings.hardware, self.settings.workload, here(self.settings),
                     EVALUATOR_VERSION, began, float(document["held_s"]), self._protocol(), document["versions"], rows,
                     clocks)

    def _protocol(self) -> Any:
        return protocol(self.settings.backend, self.settings.peer_rounds, self.settings.pairs)

    def report(self) -> Report:
        """The report of everything in the folder, this run's pieces and earlier ones'."""
        runs = (self.folder.read("run.json") or {}).get("runs", [])
        found = versions()
        for name in self.settings.operators:
            for phase in ("peers", "final"):
                found |= (self.folder.read(Piece(name, phase).name) or {}).get("versions", {})
        return assemble(self.folder, self.settings, self.began, _now(), here(self.settings), self._protocol(), found,
                        sum(float(one["seconds"]) for one in runs), tuple(self._cut))

    def peers(self, report: Report) -> Peers:
        """The libraries' figures of all operators as a document of their own."""
        return Peers(report.backend, report.hardware, report.workload, report.environment, report.evaluator,
                     report.began, report.seconds.device, report.protocol, report.versions,
                     tuple(row for operator in report.operators for row in operator.rows),
                     tuple(one for operator in report.operators for one in operator.clocks))

    def _left_s(self) -> float:
        return float("inf") if self.budget_s is None else self.budget_s - (self.clock() - self._since)

    def _note_run(self) -> None:
        """What this run took so far, in place of what it said before: it may be killed at any moment."""
        this = {"run": self._name, "ended": _now(), "seconds": round(self.clock() - self._since, 1)}
        with self.folder.alone():
            document = self.folder.read("run.json") or {"runs": []}
            earlier = [one for one in document["runs"] if one.get("run") != self._name]
            self.folder.write("run.json", {**document, "runs": [*earlier, this]})


def pieces(settings: Settings) -> Iterator[Piece]:
    """Everything to run, operator by operator, so that a cut run leaves whole operators."""
    for operator in settings.operators:
        for phase in settings.phases:
            if phase == "campaigns":
                yield from (Piece(operator, phase, agent) for agent in settings.agents)
            elif phase != "search" or settings.backend is Backend.TRITON:
                yield Piece(operator, phase)


def write(run: ReportRun, page: Callable[[Report], str]) -> Report:
    """Assemble and store ``report.json``, ``peers.json`` and ``report.html``."""
    report = run.report()
    run.folder.write("report.json", to_document(report))
    run.folder.write("peers.json", to_document(run.peers(report)))
    run.folder.write_text("report.html", page(report))
    return report


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
