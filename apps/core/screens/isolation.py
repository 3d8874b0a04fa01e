"""The walls of each sandbox mode as the doctor proved them, and how to reach the next level."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.core.screens.doctor import doctor_report
from apps.kernels.screens.verdict.trust import LEVELS, WALLS

HIGHEST = len(LEVELS) - 1
LEVEL = re.compile(r"level (\d)")
MODE = re.compile(r"^isolation \((.+)\)$")


@dataclass(frozen=True, slots=True)
class ModeRow:
    """One mode: the level proved, the walls that stand, those that do not with the reason, and the way up."""

    mode: str
    level: int
    text: str
    proved: tuple[tuple[str, str], ...]
    missing: tuple[tuple[str, str], ...]
    remedies: tuple[str, ...]

    @property
    def next_text(self) -> str:
        """What the next level adds; empty at the highest."""
        return "" if self.level >= HIGHEST else LEVELS[self.level + 1]


def mode_rows() -> list[ModeRow]:
    """Rows of the doctor's last report: its levels, or what its isolation checks say where it names none."""
    report = doctor_report()
    rows = [_of_level(row) for row in report["levels"] if isinstance(row, Mapping)]
    return rows or [row for check in report["checks"] if isinstance(check, Mapping)
                    for row in _of_check(check)]


def _of_level(row: Mapping[str, Any]) -> ModeRow:
    level = row.get("level") if isinstance(row.get("level"), int) else 0
    assert isinstance(level, int)
    level = min(max(level, 0), HIGHEST)
    return ModeRow(
        str(row.get("mode") or row.get("name") or ""), level, LEVELS[level], _named(row.get("proved")),
        tuple(_pairs(row.get("missing"))), tuple(_texts(row.get("remedy") or row.get("next") or row.get("remedies"))))


def _of_check(check: Mapping[str, Any]) -> list[ModeRow]:
    mode, level = MODE.match(str(check.get("name", ""))), LEVEL.search(str(check.get("text", "")))
    if mode is None or level is None:
        return []
    number = min(int(level.group(1)), HIGHEST)
    proved = str(check["text"]).rpartition("probe: ")[2].partition(".")[0].split(", ")
    return [ModeRow(mode.group(1), number, LEVELS[number], _named(name for name in proved if name in WALLS), (),
                    tuple(_texts(check.get("remedy"))))]


def _named(names: Any) -> tuple[tuple[str, str], ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        return ()
    return tuple((str(name), WALLS.get(str(name), "")) for name in names)


def _pairs(missing: Any) -> list[tuple[str, str]]:
    """Walls with their reasons, from a mapping, pairs, or objects with ``wall`` and ``why``."""
    if isinstance(missing, Mapping):
        return [(str(wall), str(why)) for wall, why in missing.items()]
    found = []
    for one in missing if isinstance(missing, list | tuple) else ():
        if isinstance(one, Mapping):
            found.append((str(one.get("wall") or one.get("name") or ""),
                          str(one.get("why") or one.get("reason") or one.get("text") or "")))
        elif isinstance(one, list | tuple) and len(one) == 2:
            found.append((str(one[0]), str(one[1])))
        elif isinstance(one, str):
            found.append((one, WALLS.get(one, "")))
    return found


def _texts(value: Any) -> list[str]:
    """Sentences from one, several, or an object that holds them."""
    if isinstance(value, Mapping):
        return _texts(value.get("remedy") or value.get("remedies") or value.get("text"))
    if isinstance(value, list | tuple):
        return [text for one in value for text in _texts(one)]
    return [value] if isinstance(value, str) and value else []
