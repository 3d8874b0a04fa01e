"""Django's registration of this app; the gate's triggers follow every migration."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db import connection
from django.db.models.signals import post_migrate, pre_migrate


class ReviewsConfig(AppConfig):
    """Registers ``apps.reviews``."""

    name = "apps.reviews"
    label = "reviews"

    def ready(self) -> None:
        """Reinstall the triggers after each migration: a table rebuild drops them without a word."""
        from apps.reviews import checks  # noqa: F401 - registers the system check

        pre_migrate.connect(_lift, sender=self)
        post_migrate.connect(_install, sender=self)


def _lift(plan: Any = (), **_: Any) -> None:
    """SQLite rebuilds a table by dropping and renaming, which it refuses while a trigger of another table names it.
    A migration that breaks off leaves them lifted, and that stops promotions until it goes through."""
    from apps.reviews import triggers

    if plan and connection.vendor == "sqlite":
        triggers.lift()


def _install(**_: Any) -> None:
    from apps.reviews import triggers
    from apps.reviews.models import Switches

    if triggers.tables_exist():
        triggers.install()
        Switches.objects.get_or_create(pk=1)
