"""The walls of each sandbox mode as the doctor proved them, and how to reach the next level."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from apps.core.screens.doctor import doctor_report
from apps.kernels.screens.verdict.trust import LEVELS, WALLS

HIGHEST = len(LEVELS) - 1
LEVEL = re.compile(r"level (\d)")
MODE = re.compile(r"^isolation \((.+)\)$")


@dataclass(frozen=True, slots=True)
class Missing:
    """A wall that does not stand, why, and what would mend it."""

    wall: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ModeRow:
    """Modes that fare alike: the level proved, the walls that stand, those that do not, attempts of the probe that got
    through, and the way to the next level."""

    modes: tuple[str, ...]
    level: int
    proved: tuple[tuple[str, str], ...]
    missing: tuple[Missing, ...]
    escaped: tuple[str, ...]
    remedies: tuple[str, ...]

    @property
    def text(self) -> str:
        """What the level means."""
        return LEVELS[self.level]

    @property
    def next_text(self) -> str:
        """What the next level adds; empty at the highest."""
        return "" if self.level >= HIGHEST else LEVELS[self.level + 1]


def mode_rows() -> list[ModeRow]:
    """Rows of the doctor's last report: its levels, or what its isolation checks say where it names none."""
    report = doctor_report()
    rows = [_of_level(row) for row in report["levels"] if isinstance(row, Mapping)]
    rows = rows or [row for check in report["checks"] if isinstance(check, Mapping) for row in _of_check(check)]
    alike: dict[ModeRow, list[str]] = {}
    for row in rows:
        alike.setdefault(replace(row, modes=()), []).extend(row.modes)
    return [replace(row, modes=tuple(modes)) for row, modes in alike.items()]


def _of_level(row: Mapping[str, Any]) -> ModeRow:
    known, missing = row.get("level"), row.get("missing")
    mends = row.get("remedies_by_wall")
    mends = mends if isinstance(mends, Mapping) else {}
    walls = tuple(Missing(str(wall), str(why), str(mends.get(wall, ""))) for wall, why in missing.items()
                  ) if isinstance(missing, Mapping) else ()
    told = {one.remedy for one in walls}
    return ModeRow((str(row.get("mode", "")),), min(max(known, 0), HIGHEST) if isinstance(known, int) else 0,
                   _named(row.get("proved")), walls, tuple(_texts(row.get("escaped"))),
                   tuple(text for text in _texts(row.get("next")) if text not in told))


def _of_check(check: Mapping[str, Any]) -> list[ModeRow]:
    mode, level = MODE.match(str(check.get("name", ""))), LEVEL.search(str(check.get("text", "")))
    if mode is None or level is None:
        return []
    proved = str(check["text"]).rpartition("probe: ")[2].partition(".")[0].split(", ")
    return [ModeRow((mode.group(1),), min(int(level.group(1)), HIGHEST), _named([n for n in proved if n in WALLS]), (),
                    (), tuple(_texts([check.get("remedy")])))]


def _named(names: Any) -> tuple[tuple[str, str], ...]:
    return tuple((name, WALLS.get(name, "")) for name in _texts(names))


def _texts(value: Any) -> list[str]:
    """The sentences of a list; anything else in it is left out."""
    return [text for text in value if isinstance(text, str) and text] if isinstance(value, list) else []
