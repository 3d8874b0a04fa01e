"""How far a verdict can be believed: its evidence, its walls, and what its stages cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.kernels.screens.sheet import stage_rows

EVIDENCE = (
    ("claimed", "Reported by a process that hosts the kernel and not supported by anything else. No promotion rests "
                "on it."),
    ("bounded", "Held against the judge’s own clock and against the measured roof of the device. A promotion needs at "
                "least this."),
    ("profiled", "Also confirmed by a run under a profiler: the same launches, in times that agree."),
)
LEVELS = (
    "nothing separates the candidate from the evaluator",
    "limits and a process group of its own: it ends with everything it started",
    "and it sees no network and only the files it needs",
    "and it is another user, or sees no process but its own",
)
WALLS = {
    "limits": "limits on memory, time, files and processes", "uid": "a user of its own",
    "landlock": "Landlock: only the files it needs", "seccomp": "a filter on system calls",
    "no_new_privs": "no new privileges", "netns": "no network: a namespace of its own",
    "pidns": "no other process in sight", "mountns": "a mount namespace of its own: no other files",
    "cgroup": "a hard limit on what all its processes use together",
    "userns": "a user namespace", "ipcns": "no shared memory of others", "pgroup": "a process group of its own",
}
STAGE_BUDGET_S = {"static": 0.2}
HELD = "device_held_s"
HELD_BUDGET_S = 6.0
WHOLE_BUDGET_S = {"device": 12.0, "cpu": 20.0}
"""The latency that the evaluator is built for, warm and with the full battery of cases: a Triton candidate on a GPU, a
numba candidate on two cores."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of a ladder. ``state`` is ``here``, ``below`` or ``above``."""

    name: str
    text: str
    state: str


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage with its seconds, its share of the whole and its budget where it has one."""

    name: str
    state: str
    seconds: float | None
    share: float | None
    budget: float | None

    @property
    def over(self) -> bool:
        """Whether it took longer than its budget."""
        return self.seconds is not None and self.budget is not None and self.seconds > self.budget


@dataclass(frozen=True, slots=True)
class Latency:
    """All stages, the seconds of all of them, and the budget of the whole where one is known; ``held`` is how long the
    device was kept from others, ``None`` on a CPU."""

    stages: tuple[StageTime, ...]
    seconds: float
    budget: float | None
    held: float | None = None
    held_budget: float | None = None


def evidence_ladder(evidence: str) -> list[Rung]:
    """The levels of evidence with the one this verdict has; none is marked where nothing was timed."""
    names = [name for name, _ in EVIDENCE]
    here = names.index(evidence) if evidence in names else -1
    return [Rung(name, text, _state(place, here)) for place, (name, text) in enumerate(EVIDENCE)]


def isolation_ladder(level: int) -> list[Rung]:
    """The levels of isolation with the one that was proved."""
    return [Rung(f"level {place}", text, _state(place, level)) for place, text in enumerate(LEVELS)]


def _state(place: int, here: int) -> str:
    return "here" if place == here else ("below" if place < here else "above")


def walls(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Walls that the escape probe found standing: name and what it is."""
    proved = ((document.get("evaluator") or {}).get("isolation") or {}).get("proved") or ()
    return [(name, WALLS.get(name, "")) for name in proved]


def latency(document: Mapping[str, Any]) -> Latency:
    """Seconds of every stage against what the evaluator is built for."""
    rows = stage_rows(document)
    total = sum(row.seconds or 0.0 for row in rows)
    hardware = str(document.get("hardware", ""))
    kind = "cpu" if hardware.startswith("cpu-") else ("device" if hardware.startswith("nvidia-") else "")
    clocks = (document.get("environment") or {}).get("clocks") or {}
    stages = tuple(
        StageTime(row.name, row.state, row.seconds, row.seconds / total if row.seconds is not None and total else None,
                  STAGE_BUDGET_S.get(row.name)) for row in rows)
    return Latency(stages, total, WHOLE_BUDGET_S.get(kind), clocks.get(HELD), HELD_BUDGET_S)
