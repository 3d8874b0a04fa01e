"""System check: the gate's triggers stand in the database."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Tags, register
from django.core.checks import Warning as Caution
from django.db.utils import DatabaseError


@register(Tags.database)
def gate_triggers(databases: Any = None, **_: Any) -> list[CheckMessage]:
    """A warning about missing or altered triggers. Runs with ``check --database default`` and before ``migrate``.

    No error: ``migrate`` runs this check first, and an error would refuse the very command that reinstalls them.
    Promotions stop by the gate's own reading, not by this check.
    """
    from apps.reviews import triggers

    if not databases:
        return []
    try:
        if not triggers.tables_exist():
            return []
        gone = triggers.missing()
    except DatabaseError as error:
        return [Caution(f"The gate's triggers could not be verified: {error}", id="reviews.W002")]
    if not gone:
        return []
    return [Caution(
        f"{len(gone)} of the gate's triggers are missing or altered: {', '.join(gone)}. Promotions stop until they "
        "stand again.", hint="Run `python manage.py migrate`; it reinstalls them.", id="reviews.W001")]
