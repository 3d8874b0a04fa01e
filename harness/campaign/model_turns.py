"""Turns of a language model in a file: one JSON document a line, the last line of a turn counts. Also those of a
campaign that leaves no folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from harness.agents.llm.endpoints import ModelFacts
from harness.agents.llm.replay import recorded_turns
from harness.domain.codec import from_document, to_document
from harness.domain.turn import Turn

FILE, MODEL = "turns.jsonl", "model.json"


class HeldTurns:
    """Turns in memory. A turn's name is (round, attempt, sample, number) and the digest of its question."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self._turns = {_name(turn): turn for turn in turns}

    def stored(self, round: int) -> tuple[Turn, ...]:
        """The turns of a round in order of (attempt, sample, number)."""
        return tuple(self._turns[name] for name in sorted(self._turns) if name[0] == round)

    def keep(self, turn: Turn) -> None:
        """Write or replace a turn."""
        self._turns[_name(turn)] = turn

    def all(self) -> tuple[Turn, ...]:
        """Every turn in order."""
        return tuple(self._turns[name] for name in sorted(self._turns))


class FileTurns(HeldTurns):
    """Turns in ``turns.jsonl`` of a campaign's folder. What an interrupted campaign left there is used again."""

    def __init__(self, folder: Path) -> None:
        """Raises ``DocumentError`` where the file holds something else."""
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / FILE
        super().__init__(recorded_turns(self._path) if self._path.exists() else ())
        if self._path.exists():
            written = self._path.read_bytes()
            if not written.endswith(b"\n"):  # a kill in the middle of a line: the next one must not continue it
                os.truncate(self._path, written.rfind(b"\n") + 1)

    def keep(self, turn: Turn) -> None:
        """Write or replace a turn; on return it survives a kill."""
        super().keep(turn)
        with self._path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(to_document(turn)) + "\n")
            lines.flush()
            os.fsync(lines.fileno())


def keep_facts(folder: Path, facts: ModelFacts | None) -> None:
    """Write what the settings said of the model: how much it was told and could answer follows from it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MODEL).write_text(json.dumps(to_document(facts) if facts is not None else None) + "\n", "utf-8")


def kept_facts(folder: Path) -> ModelFacts | None:
    """What was written there, ``None`` where the settings said nothing."""
    document = json.loads((folder / MODEL).read_text("utf-8"))
    return None if document is None else from_document(document, ModelFacts)


def _name(turn: Turn) -> tuple[int, int, int, int, str]:
    return turn.round, turn.attempt, turn.sample, turn.number, turn.request_digest
