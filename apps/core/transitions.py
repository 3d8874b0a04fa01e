"""State machines: one table each (in the app's ``choices.py``) and one guarded UPDATE for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import models
from django.db.models import F

from apps.core.errors import ImpossibleTransition, MovedOn

Row = TypeVar("Row", bound=models.Model)


@dataclass(frozen=True, slots=True)
class Machine:
    """A named state machine. ``table`` maps each state to the states that may follow it."""

    name: str
    table: Mapping[str, frozenset[str]]

    def sources(self, target: str) -> frozenset[str]:
        """States from which ``target`` may be reached."""
        return frozenset(state for state, following in self.table.items() if target in following)

    def allows(self, source: str, target: str) -> bool:
        """Whether ``target`` may follow ``source``."""
        return target in self.table.get(source, frozenset())


def transition(
    row: Row, machine: Machine, target: str, *, expected_version: int | None = None, **changes: Any
) -> Row:
    """Move ``row`` to ``target`` by one ``UPDATE ... WHERE id AND version AND state IN (...)`` and refresh it.

    The row needs fields ``state`` and ``version``. ``expected_version`` is the version the caller saw
    (the row's own by default); ``changes`` are further fields set by the same statement.

    Raises:
        ImpossibleTransition: the machine has no such step from the present state.
        MovedOn: somebody else changed the row since it was read.
    """
    seen: int = row.version if expected_version is None else expected_version  # type: ignore[attr-defined]
    manager = type(row)._default_manager
    updated = manager.filter(pk=row.pk, version=seen, state__in=machine.sources(target)).update(
        state=target, version=F("version") + 1, **changes
    )
    if updated:
        row.refresh_from_db()
        return row
    present = manager.filter(pk=row.pk).values_list("state", "version").first()
    if present is None:
        raise MovedOn(f"This {machine.name} no longer exists.")
    state, version = present
    if version != seen:
        raise MovedOn(f"This {machine.name} moved since you opened it: it is now '{state}'. Nothing was recorded; "
                      "look at its present state and decide again.")
    following = ", ".join(sorted(machine.table.get(state, frozenset()))) or "nothing: the state is final"
    raise ImpossibleTransition(
        f"A {machine.name} that is '{state}' cannot become '{target}'. What can follow: {following}."
    )
