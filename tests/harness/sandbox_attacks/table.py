"""All attempts, and the settings they run in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.harness.sandbox_attacks.attempt import Attempt
from tests.harness.sandbox_attacks.files import FILES
from tests.harness.sandbox_attacks.kernel import KERNEL, LAST
from tests.harness.sandbox_attacks.lent import LENT
from tests.harness.sandbox_attacks.lives import LIVES, STRICT, End
from tests.harness.sandbox_attacks.processes import PROCESSES

ATTEMPTS: tuple[Attempt, ...] = (*PROCESSES, *KERNEL, *FILES, *LAST)

NO_NAMESPACES = {"namespaces": False}
SETTINGS: Mapping[str, dict[str, Any]] = {
    "3": {},
    "3 without seccomp": {"without": ("seccomp",)},
    "3 without landlock": {"without": ("landlock",)},
    "2": {**NO_NAMESPACES, "without": ("uid",)},
    "1": {**NO_NAMESPACES, "without": ("uid", "landlock")},
    "0": {**NO_NAMESPACES, "without": ("uid", "landlock", "seccomp", "limits")},
}
"""How a sandbox is opened so that its walls are those of a level, or of level 3 with one wall missing."""

WORDS = {"0": "level 0", "1": "level 1", "3 without seccomp": "no system-call filter"}


def rendered() -> str:
    """All attacks as the tables of the threat model: what is tried, what stops it, where it would be open."""
    lines = ["| attempt | group | what it does | stopped by | open where |", "| --- | --- | --- | --- | --- |"]
    for attempt in (*ATTEMPTS, *LENT):
        where = ", ".join(words for name, words in WORDS.items() if name in attempt.may) or "nowhere"
        lines.append(f"| `{attempt.name}` | {attempt.group} | {attempt.does} | {attempt.by} | {where} |")
    lines += ["", "| candidate | what it does | what its verdict says (levels 3 and 2) |", "| --- | --- | --- |"]
    for life in LIVES:
        ends = dict.fromkeys(_worded(end) for name in STRICT for end in life.ends.get(name, ()))
        lines.append(f"| `{life.name}` | {life.does} | {' or '.join(ends)} |")
    return "\n".join(lines)


def _worded(end: End) -> str:
    return "its own answer stands, the rest had no effect" if end is None else f"{end[0]} ({end[1]})"
