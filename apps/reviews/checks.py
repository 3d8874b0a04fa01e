"""System check: the gate's triggers stand in the database."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db.utils import DatabaseError


@register(Tags.database)
def gate_triggers(databases: Any = None, **_: Any) -> list[CheckMessage]:
    """An error for each missing or altered trigger. Runs with ``check --database default`` and at every ``serve``."""
    from apps.reviews import triggers

    if not databases:
        return []
    try:
        if not triggers.tables_exist():
            return []
        gone = triggers.missing()
    except DatabaseError as error:
        return [Error(f"The gate's triggers could not be verified: {error}", id="reviews.E002")]
    if not gone:
        return []
    return [Error(
        f"{len(gone)} of the gate's triggers are missing or altered: {', '.join(gone)}. Promotions stop until they "
        "stand again.", hint="Run `python manage.py migrate`; it reinstalls them.", id="reviews.E001")]
