"""A hardware digest as a page shows it: facts with their sources, rules, and what this installation can do with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.campaigns.screens.facts import fact_rows

SHORT = ("Architecture", "Multiprocessors", "Compute units", "Memory bandwidth", "Memory", "Shared memory", "Cores")
KINDS = {"gpu": "GPU", "cpu": "CPU"}


@dataclass(frozen=True, slots=True)
class DeviceFact:
    """One fact: what it says, a remark, and where it is from (empty for facts without one)."""

    name: str
    value: str
    note: str
    source: str


@dataclass(frozen=True, slots=True)
class Device:
    """A device; ``use`` says what campaigns for it do here: ``timed``, ``dry`` or ``known`` (nothing yet)."""

    name: str
    title: str
    kind: str
    backends: tuple[str, ...]
    use: str
    facts: tuple[DeviceFact, ...]
    rules: tuple[str, ...]

    @property
    def short(self) -> dict[str, DeviceFact]:
        """The few facts that a table of devices has room for, by name."""
        return {fact.name: fact for fact in self.facts if fact.name in SHORT}

    @property
    def sources(self) -> int:
        """How many facts say where they are from."""
        return sum(bool(fact.source) for fact in self.facts)


def device_of(
    name: str, digest: Mapping[str, Any], backends: Sequence[str], *, here: bool, targets: Sequence[str]
) -> Device:
    """Read a digest; one of an earlier form, without listed facts, is shown as it is."""
    listed = [one for one in digest.get("facts") or () if isinstance(one, Mapping) and one.get("value")]
    facts = [DeviceFact(one["name"], str(one["value"]), one.get("note") or "", one.get("source") or "")
             for one in listed] or [DeviceFact(key, value, "", "") for key, value in fact_rows(digest)]
    use = "timed" if here else ("dry" if name in targets else "known")
    return Device(name, digest.get("title") or name, KINDS.get(digest.get("kind") or "", ""), tuple(backends), use,
                  tuple(facts), tuple(digest.get("rules") or ()))
