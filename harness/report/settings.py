"""What a report runs, and the folder that remembers it between several runs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.domain.errors import UsageError
from harness.domain.files import read_document
from harness.domain.verdict import Environment
from harness.domain.vocabulary import Backend, Tier
from harness.domain.words import one_line
from harness.hardware.detect import environment
from harness.operators import registry

PHASES = ("peers", "campaigns", "search", "final")
"""In order: libraries beside the baseline, every agent's campaign, a bulk search over the baseline's values (Triton),
libraries beside everybody's best kernel."""
USUAL = ("peers", "campaigns", "final")
"""What is run where nothing is said: a bulk search takes minutes of a device for an operator."""
AGENTS = ("playbook", "autotune")
MOST = 1e12
"""Larger numbers are nobody's settings."""
AGAIN = "Remove it, and what it held is measured again."
SESSION = {"rows": list, "clocks": list, "best": list, "versions": dict, "held_s": (int, float)}
HOLDS: Mapping[str, Mapping[str, Any]] = {
    "campaign.json": {"campaign": dict, "kernels": list, "sources": dict},
    "search.json": {"search": dict, "kernels": list, "sources": dict}, "peers.json": SESSION, "final.json": SESSION,
}
"""What documents of these names hold at least, and as what; their own parts are read strictly where they are used."""


@dataclass(frozen=True, slots=True)
class Settings:
    """``rounds`` and ``seconds`` bound each campaign; ``peer_rounds`` and ``pairs`` are samples of the sessions with
    libraries, ``None`` the usual numbers."""

    backend: Backend
    hardware: str
    workload: str
    operators: tuple[str, ...]
    agents: tuple[str, ...] = AGENTS
    phases: tuple[str, ...] = USUAL
    grant: Tier = Tier.HEAVY
    strategy: str | None = None
    rounds: int = 20
    seconds: float = 600.0
    peer_rounds: int | None = None
    pairs: int | None = None
    space: int | None = None
    """Configurations of a bulk search for every shape bucket; the whole grid for ``None``."""

    def narrowed(self, operators: tuple[str, ...] | None, agents: tuple[str, ...] | None,
                 phases: tuple[str, ...] | None) -> Settings:
        """For a run that does a part of it, or something more; what is not named stays."""
        return replace(self, operators=operators or self.operators, agents=agents or self.agents,
                       phases=phases or self.phases)

    def widened(self, other: Settings) -> Settings:
        """With what ``other`` runs besides, in the usual order."""
        return replace(self, operators=tuple(dict.fromkeys(self.operators + other.operators)),
                       agents=tuple(dict.fromkeys(self.agents + other.agents)),
                       phases=tuple(phase for phase in PHASES if phase in self.phases + other.phases))


class Folder:
    """Documents of a report by name; each is written whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, name: str) -> dict[str, Any] | None:
        """A document, ``None`` where it is not there yet.

        Raises:
            UsageError: it is there and cannot be read.
        """
        path = self.path / name
        if not path.is_file():
            return None
        document = read_document(path, "The document", AGAIN)
        wanted = HOLDS.get(path.name, {})
        if not isinstance(document, dict) or not all(isinstance(document.get(key), kind)
                                                     for key, kind in wanted.items()):
            raise UsageError(f"{path} is no document of a report. {AGAIN}")
        return document

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """Store a document."""
        self.write_text(name, json.dumps(document, indent=1, sort_keys=True) + "\n")

    def write_text(self, name: str, text: str) -> Path:
        """Store a text; where it lies."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        partial.write_text(text, "utf-8")
        partial.replace(path)
        return path

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """For reading and writing as one step: several runs may share a folder, one for each GPU of a host."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield


def remember(folder: Folder, settings: Settings, began: str) -> None:
    """Store the settings of a report, of one that goes on beside its earlier runs."""
    environment_class = here(settings).class_
    with folder.alone():
        runs = (folder.read("run.json") or {}).get("runs", [])
        folder.write("run.json", {"settings": asdict(settings), "began": began, "runs": runs,
                                  "environment": environment_class})


def here(settings: Settings) -> Environment:
    """The environment that this host's figures belong to."""
    return environment(settings.backend, settings.hardware if settings.backend is Backend.TRITON else None)


def remembered(folder: Folder) -> tuple[Settings, str]:
    """The settings and the beginning of the report in ``folder``.

    Raises:
        UsageError: there is none, or its figures belong to another environment class than this host's.
    """
    document = folder.read("run.json")
    if document is None:
        raise UsageError(f"{folder.path} holds no report to go on with. Start one with --out.")
    try:
        settings = _settings_of(document)
    except (KeyError, TypeError, ValueError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else error
        raise UsageError(f"{folder.path / 'run.json'} is not what a report of this version was begun with: "
                         f"{one_line(str(why), 200)}. Nothing was changed; start another report with --out.") from error
    begun, now = document.get("environment"), here(settings).class_
    if begun != now:
        raise UsageError(f"The report in {folder.path} is of '{begun}', here it would be '{now}'. Figures of different "
                         "environment classes are never mixed: start another report.")
    return settings, str(document["began"])


def _settings_of(document: Mapping[str, Any]) -> Settings:
    """The settings in a ``run.json``. Raises ``KeyError``, ``TypeError`` or ``ValueError`` where it is none."""
    raw = dict(_of(dict, document["settings"], "settings"))
    known = {"operators": registry.NAMES, "agents": AGENTS, "phases": PHASES}
    for name, names in known.items():
        raw[name] = tuple(_of(list, raw[name], name))
        if not raw[name] or not set(map(str, raw[name])) <= set(names):
            raise ValueError(f"{name} are not some of {', '.join(names)}")
    for name in ("hardware", "workload"):
        _of(str, raw[name], name)
    for name in ("rounds", "peer_rounds", "pairs", "space"):
        _positive(raw.get(name, 1), name, whole=True, absent=name != "rounds")
    _positive(raw.get("seconds", 1.0), "seconds")
    if raw.get("strategy") not in (None, "halving", "exhaustive"):
        raise ValueError("strategy is none of halving, exhaustive")
    raw["backend"], raw["grant"] = Backend(raw["backend"]), Tier(raw.get("grant", Tier.HEAVY))
    _of(str, document["began"], "began")
    for one in _of(list, document.get("runs", []), "runs"):
        _positive(_of(dict, one, "a run")["seconds"], "seconds of a run", zero=True)
    return Settings(**raw)


def _of(kind: type, value: Any, name: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name} is no {kind.__name__}")
    return value


def _positive(value: Any, name: str, *, whole: bool = False, absent: bool = False, zero: bool = False) -> None:
    if value is None and absent:
        return
    number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not number or not (0 < value < MOST or (zero and value == 0)):
        raise ValueError(f"{name} is no {'whole ' if whole else ''}number that a report can have")
